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
	if err := Next(d, v); err != nil {
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: empty", file)
		}
		return located(file, err)
	}
	var rest any
	switch err := Next(d, &rest); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return located(file, err)
	}
	return fmt.Errorf("%s: a second document; want one", file)
}

// Next reads the next document of d into v. The library panics on some broken
// input (a tag in front of nothing: "a: !x "); that is an error here, and d must
// not be used after it.
func Next(d *yaml.Decoder, v any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("not YAML that can be read (%v)", r)
		}
	}()
	return d.Decode(v)
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
