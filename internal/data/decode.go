// Package data decodes the YAML files that hold invar's facts. It is strict:
// an unknown key, a duplicate key, a wrong type and a second document are
// errors with file, line and column.
package data

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/goccy/go-yaml"
)

// Decode reads the one document in b, the content of file, into v.
func Decode(file string, b []byte, v any) error {
	d := yaml.NewDecoder(bytes.NewReader(b), yaml.Strict())
	if err := d.Decode(v); err != nil {
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: empty", file)
		}
		return located(file, err)
	}
	var rest any
	switch err := d.Decode(&rest); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return located(file, err)
	}
	return fmt.Errorf("%s: a second document; want one", file)
}

// located puts file:line:column in front of the parser's first line.
func located(file string, err error) error {
	var ye yaml.Error
	if errors.As(err, &ye) && ye.GetToken() != nil {
		p := ye.GetToken().Position
		return fmt.Errorf("%s:%d:%d: %s", file, p.Line, p.Column, ye.GetMessage())
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Errorf("%s: %s", file, first)
}
