package probe

// facts is what scripts/invar_probe/facts.py answers.
type facts struct {
	Python struct {
		Executable string   `json:"executable"`
		Version    string   `json:"version"`
		Prefix     string   `json:"prefix"`
		Path       []string `json:"path"`
	} `json:"python"`
	Import     importFacts     `json:"import"`
	Torch      torchFacts      `json:"torch"`
	Operators  []operatorFacts `json:"operators"`
	Registered []string        `json:"registered"`
	Mapped     []mappedFile    `json:"mapped"`
	Package    packageFacts    `json:"package"`
	CUDA       cudaFacts       `json:"cuda"`
	NPU        *npuFacts       `json:"npu"`
}

// cudaFacts is what the library with the GPU code says about itself.
type cudaFacts struct {
	Error    string `json:"error"` // why it could not be asked
	ABI      int    `json:"abi"`
	Contract string `json:"contract"`
	Version  string `json:"version"`
	Arches   string `json:"arches"`
}

type importFacts struct {
	OK        bool     `json:"ok"`
	Error     []string `json:"error"` // outermost first, each as Python prints it
	Traceback string   `json:"traceback"`
	File      string   `json:"file"`
	Path      []string `json:"path"`
	Version   string   `json:"version"`
	Warnings  []struct {
		Category string `json:"category"`
		Text     string `json:"text"`
		Place    string `json:"place"`
	} `json:"warnings"`
	Seconds float64 `json:"seconds"`
}

type torchFacts struct {
	Version string `json:"version"`
	File    string `json:"file"`
	Threads int    `json:"threads"`
}

type operatorFacts struct {
	Name      string          `json:"name"`
	Found     bool            `json:"found"`
	Error     string          `json:"error"`
	Schemas   []string        `json:"schemas"`
	Want      string          `json:"want"`
	WantError string          `json:"want_error"`
	Keys      map[string]bool `json:"keys"`
	KeyError  string          `json:"key_error"`
}

type mappedFile struct {
	Path    string `json:"path"`
	Device  string `json:"device"`
	Inode   uint64 `json:"inode"`
	Deleted bool   `json:"deleted"`
}

// packageFacts is what the two stages say about themselves.
type packageFacts struct {
	Error            string     `json:"error"` // why they could not be asked
	Version          string     `json:"version"`
	Library          string     `json:"library"` // stage 1 as stage 2 opened it
	ABI              int        `json:"abi"`
	ExpectedABI      int        `json:"expected_abi"`
	Contract         string     `json:"contract"`
	ExpectedContract string     `json:"expected_contract"`
	Stage1Version    string     `json:"stage1_version"`
	Operators        []string   `json:"operators"` // that stage 1 says it holds
	Levels           []isaLevel `json:"levels"`
	Current          string     `json:"current"`
	Routes           []string   `json:"routes"`
	Displaced        []string   `json:"displaced"`  // routes that another library took over
	NotRouted        []string   `json:"not_routed"` // and why
}

type isaLevel struct {
	Name      string `json:"name"`
	Available bool   `json:"available"`
}

// measured is what scripts/invar_probe/measure.py answers.
type measured struct {
	Numbers        []numberFacts    `json:"numbers"`
	NumbersSeconds float64          `json:"numbers_seconds"`
	Invariance     *invarianceFacts `json:"invariance"`
}

type numberFacts struct {
	Operator string      `json:"operator"`
	Family   string      `json:"family"`
	Label    string      `json:"label"`
	Dtype    string      `json:"dtype"`
	Error    string      `json:"error"`
	Ordinary []deviation `json:"ordinary"`
	Special  []deviation `json:"special"`
}

type deviation struct {
	Error     string  `json:"error"`
	Ratio     float64 `json:"ratio"` // error over what is allowed
	Row       int     `json:"row"`
	Element   int     `json:"element"`
	Got       string  `json:"got"` // as Python prints it: may be nan or inf
	Want      string  `json:"want"`
	Allowed   string  `json:"allowed"`
	Nonfinite int     `json:"nonfinite"` // NaN or infinities where others were due, or the reverse
	Elements  int     `json:"elements"`
	Zero      bool    `json:"zero"`
}

type invarianceFacts struct {
	Operators []caseFacts  `json:"operators"`
	Control   []caseFacts  `json:"control"`
	Failures  []caseFacts  `json:"failures"`
	Settings  []setting    `json:"settings"`
	LeftOut   []string     `json:"left_out"`
	Observed  *observation `json:"observed"`
	Seconds   float64      `json:"seconds"`
}

type setting struct {
	ISA     string `json:"isa"`
	Threads int    `json:"threads"`
}

type caseFacts struct {
	Operator       string              `json:"operator"`
	Family         string              `json:"family"`
	Label          string              `json:"label"`
	Dtype          string              `json:"dtype"`
	Error          string              `json:"error"`
	Calls          int                 `json:"calls"`
	Batches        []int               `json:"batches"`
	Covered        map[string][]string `json:"covered"`
	RowsCompared   int                 `json:"rows_compared"`
	Pairs          int64               `json:"pairs"`
	Differ         int64               `json:"differ"`
	Differing      []int               `json:"differing_batches"`
	Contexts       map[string]int      `json:"differing_contexts"`
	Examples       []example           `json:"examples"`
	Rows           int                 `json:"rows"`
	Inputs         int                 `json:"distinct_inputs"`
	Results        int                 `json:"distinct_results"`
	Constant       bool                `json:"constant"`
	OrderSensitive int                 `json:"order_sensitive"`
	Routed         *routedFacts        `json:"routed"`
	Seconds        float64             `json:"seconds"`
}

// routedFacts compares how often an aten function was called with how often
// the package says that it took the call.
type routedFacts struct {
	Function string `json:"function"`
	Calls    int    `json:"calls"`
	Taken    int64  `json:"taken"`
}

type example struct {
	Row        int    `json:"row"`
	First      string `json:"first"`
	Second     string `json:"second"`
	Element    int    `json:"element"`
	FirstBits  string `json:"first_bits"`
	SecondBits string `json:"second_bits"`
}

type observation struct {
	Operator  string `json:"operator"`
	Dtype     string `json:"dtype"`
	Threads   int    `json:"threads"`
	Shape     []int  `json:"shape"`
	Batches   []int  `json:"batches"`
	Differing []int  `json:"differing_batches"`
}
