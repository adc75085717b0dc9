package version

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	goversion "github.com/hashicorp/go-version"
)

// ErrUnknown is the error of text that a tool prints where it knows no
// version: "N/A", "XXX.XX", "Unknown", nothing at all. It is not a malformed
// version and must not be taken for one.
var ErrUnknown = errors.New("version is unknown")

// maxLen bounds what is looked at; no version comes near it.
const maxLen = 256

// check refuses text that no scheme can hold.
func check(s string) error {
	if len(s) > maxLen {
		return fmt.Errorf("it has %d characters, at most %d can be", len(s), maxLen)
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return fmt.Errorf("byte %#02x in it is not printable ASCII", s[i])
		}
	}
	return nil
}

// Parse reads text as a version of the given kind. Blanks and quotes around it
// are dropped; what remains is what String gives back.
func Parse(kind Kind, text string) (Version, error) {
	s := strings.Trim(text, " \t\r\n\v\f\"'")
	if err := check(s); err != nil {
		return Version{}, fmt.Errorf("%.40q is not a %s version: %w", s, kind, err)
	}
	if placeholder(s) {
		return Version{}, fmt.Errorf("%w: %q", ErrUnknown, s)
	}
	v := Version{kind: kind, original: s}
	low := strings.ToLower(s)
	var err error
	switch kind {
	case PEP440:
		err = v.parsePEP440(low)
	case CANN, Driver:
		err = v.parseVendor(low)
	case CUDA:
		err = v.parseCUDA(low)
	case Plain:
		err = v.parsePlain(low)
	default:
		err = errors.New("no such kind")
	}
	if err != nil {
		return Version{}, fmt.Errorf("%q is not a %s version: %w", s, kind, err)
	}
	return v, nil
}

// MustParse is Parse for text that is part of the program; it panics.
func MustParse(kind Kind, text string) Version {
	v, err := Parse(kind, text)
	if err != nil {
		panic(err)
	}
	return v
}

var placeholderRE = regexp.MustCompile(`(?i)^(\[?(n/?a|unknown( error)?|not supported|not available|none|null|-+)\]?|x+(\.x+)*|deprecated\b.*)$`)

func placeholder(s string) bool { return s == "" || placeholderRE.MatchString(s) }

var pep440RE = regexp.MustCompile(`^v?(?:(\d+)!)?(\d+(?:\.\d+)*)` +
	`(?:[-_.]?(alpha|beta|preview|pre|rc|a|b|c)[-_.]?(\d*))?` +
	`(?:-(\d+)|[-_.]?(post|rev|r)[-_.]?(\d*))?` +
	`(?:[-_.]?(dev)[-_.]?(\d*))?` +
	`(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?$`)

func (v *Version) parsePEP440(s string) error {
	m := pep440RE.FindStringSubmatch(s)
	if m == nil {
		return errors.New("want N(.N)* with rc, post, dev or a +label after it")
	}
	var err error
	if v.epoch, err = number(m[1]); err != nil {
		return err
	}
	if err = v.setRelease(m[2]); err != nil {
		return err
	}
	if m[5] != "" { // 1.0-1 is the old spelling of 1.0.post1
		m[6], m[7] = "post", m[5]
	}
	for _, tag := range [][2]string{{m[3], m[4]}, {m[6], m[7]}, {m[8], m[9]}} {
		if tag[0] == "" {
			continue
		}
		n, err := number(tag[1])
		if err != nil {
			return err
		}
		v.chain = append(v.chain, part{words[tag[0]], n})
	}
	v.local = strings.NewReplacer("-", ".", "_", ".").Replace(m[10])
	return nil
}

// words are the tags that both schemes know; "b" means beta in PEP 440 and a
// build number in CANN.
var words = map[string]rank{
	"dev": rankDev, "t": rankDev,
	"a": rankA, "alpha": rankA, "b": rankB, "beta": rankB,
	"c": rankRC, "rc": rankRC, "pre": rankRC, "preview": rankRC,
	"post": rankPost, "rev": rankPost, "r": rankPost, "sp": rankPost, "spc": rankPost,
}

var (
	releaseRE = regexp.MustCompile(`^\d+(?:\.\d+)*`)
	tagRE     = regexp.MustCompile(`^[._-]?([a-z]+)[._-]?(\d*)`)
	updateRE  = regexp.MustCompile(`^[._-](\d+)`)
)

// parseVendor reads CANN and driver versions: 8.2.RC1.alpha003, 25.3.rc1,
// 24.1.rc3.6, 8.0.T63, 7.6.T13.0.B094, 9.1.0.B150, CANN-1.83.
func (v *Version) parseVendor(s string) error {
	s = strings.TrimPrefix(strings.TrimPrefix(s, "cann-"), "v")
	rel := releaseRE.FindString(s)
	if err := v.setRelease(rel); err != nil {
		return err
	}
	for s = s[len(rel):]; s != ""; {
		m := updateRE.FindStringSubmatch(s)
		p := part{rank: rankNum}
		if m == nil {
			if m = tagRE.FindStringSubmatch(s); m == nil {
				return fmt.Errorf("cannot read %q", s)
			}
			word, digits := m[1], m[2]
			if word == "b" {
				v.build, s = "b"+digits, s[len(m[0]):]
				continue
			}
			var known bool
			if p.rank, known = words[word]; !known {
				return fmt.Errorf("cannot read %q", s)
			}
			m[1] = digits
		}
		var err error
		if p.n, err = number(m[1]); err != nil {
			return err
		}
		v.chain, s = append(v.chain, p), s[len(m[0]):]
	}
	v.chain = trimZero(v.chain)
	return nil
}

// trimZero drops updates numbered 0 at the end: RC1.0 is RC1, as 9.1.0 is 9.1.
func trimZero(c []part) []part {
	for len(c) > 0 && c[len(c)-1] == (part{rankNum, 0}) {
		c = c[:len(c)-1]
	}
	return c
}

var (
	cudaLabelRE = regexp.MustCompile(`^cu(\d{2,3})$`)
	cudaRE      = regexp.MustCompile(`^v?(\d+(?:\.\d+)*)$`)
)

func (v *Version) parseCUDA(s string) error {
	if m := cudaLabelRE.FindStringSubmatch(s); m != nil {
		return v.setRelease(cudaLabel(m[1]))
	}
	m := cudaRE.FindStringSubmatch(s)
	if m == nil {
		return errors.New("want N.N, cuNNN or the integer of the C API")
	}
	n, err := number(m[1])
	if err == nil && n >= 1000 { // 12080 is 12.8, as in CUDART_VERSION
		return v.setRelease(fmt.Sprintf("%d.%d", n/1000, n%1000/10))
	}
	return v.setRelease(m[1])
}

// cudaLabel reads the digits of a wheel label: 128 is 12.8, 92 is 9.2, and 12
// and 13 are the major alone, as in the folder nvidia/cu13.
func cudaLabel(digits string) string {
	if len(digits) == 2 && digits[0] == '1' {
		return digits
	}
	return digits[:len(digits)-1] + "." + digits[len(digits)-1:]
}

func (v *Version) parsePlain(s string) error {
	rel := releaseRE.FindString(strings.TrimPrefix(s, "v"))
	if err := v.setRelease(rel); err != nil {
		return err
	}
	v.local = strings.TrimLeft(strings.TrimPrefix(s, "v")[len(rel):], "+-._ ")
	return nil
}

func (v *Version) setRelease(digits string) error {
	if digits == "" {
		return errors.New("it does not start with a number")
	}
	core, err := goversion.NewVersion(digits)
	if err != nil {
		return errors.New("a number in it is too large")
	}
	v.core = core
	return nil
}

func number(digits string) (int64, error) {
	if digits == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("number %s is out of range", digits)
	}
	return n, nil
}
