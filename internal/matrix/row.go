package matrix

// A Row is one job of a CI.
type Row struct {
	Name         string   `json:"name"` // "cpu-debian12-amd64-py3.11-torch2.15.0"
	Target       string   `json:"target"`
	Family       string   `json:"family"`       // of the image
	Arch         string   `json:"arch"`         // amd64 or arm64
	Platform     string   `json:"platform"`     // linux/amd64
	OS           string   `json:"os"`           // ubuntu24.04
	Python       string   `json:"python"`       // 3.12
	Torch        string   `json:"torch"`        // 2.15.0
	Requirements string   `json:"requirements"` // for pip: "torch==2.10.0 torch-npu==2.10.0.post4"
	CANN         string   `json:"cann"`         // empty outside Ascend
	SoC          string   `json:"soc"`          // empty outside Ascend
	Runner       string   `json:"runner"`       // label of the machine
	Container    string   `json:"container"`    // image with this OS and Python
	Require      int      `json:"require"`      // probe level that a build must reach
	Image        bool     `json:"image"`        // invar image build makes exactly this combination
	Tag          string   `json:"tag"`          // of this architecture's image: invar image build --tag VERSION-ARCH
	Tags         []string `json:"tags"`         // that the images of all architectures share
}

// A combination is a torch and what belongs to it.
type combination struct {
	torch        string
	python       string // range
	cann         string
	requirements string
}
