package runpkg

import "io/fs"

// A Kind of Entry.
const (
	TypeFile = "file"
	TypeDir  = "dir"
	TypeLink = "link"
)

// An Entry is one file, folder or symbolic link in a package. A hard link in
// a tar is an Entry of TypeFile with the content of what it names.
type Entry struct {
	Path   string      `json:"path"` // slash-separated, relative, clean
	Type   string      `json:"type"`
	Mode   fs.FileMode `json:"mode"` // permission bits only
	Size   int64       `json:"size,omitempty"`
	SHA256 string      `json:"sha256,omitempty"` // of a file, in hex
	Link   string      `json:"link,omitempty"`   // what a symbolic link holds
}
