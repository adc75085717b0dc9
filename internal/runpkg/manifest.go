package runpkg

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// ManifestSchema counts incompatible changes of Manifest.
const ManifestSchema = 1

// A Manifest says what a run package of our own kind holds and how it was
// made. It lies in the header as JSON, readable without unpacking anything.
type Manifest struct {
	Schema       int      `json:"schema"`
	Name         string   `json:"name"`                    // "invar-ops-cpu"
	Version      string   `json:"version"`                 // "0.1.0"
	Platform     string   `json:"platform"`                // "linux.x86_64"
	Contract     string   `json:"contract,omitempty"`      // version of the numerical contract
	Operators    []string `json:"operators,omitempty"`     // "mm", "softmax"
	ISALevels    []string `json:"isa_levels,omitempty"`    // "baseline", "avx2", "avx512"
	Compiler     string   `json:"compiler,omitempty"`      // "g++ 12.2.0"
	SourceDigest string   `json:"source_digest,omitempty"` // "sha256:..." of what it was built from
	// Extra is what only one kind of target knows, such as the CUDA
	// architectures; runpkg keeps it and does not look inside.
	Extra map[string]json.RawMessage `json:"extra,omitempty"`
	Files []Entry                    `json:"files"` // written by Write, sorted by path
}

// encode gives the same bytes for the same manifest: struct order, sorted map keys.
func (m *Manifest) encode() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(m); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return b.Bytes(), nil
}

// decodeManifest refuses keys that it does not know: they would be facts
// about the package that nobody looks at.
func decodeManifest(data []byte) (*Manifest, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	m := &Manifest{}
	if err := dec.Decode(m); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("manifest: text after the closing brace")
	}
	if m.Schema != ManifestSchema {
		return nil, fmt.Errorf("manifest: schema %d, this invar reads schema %d", m.Schema, ManifestSchema)
	}
	return m, nil
}
