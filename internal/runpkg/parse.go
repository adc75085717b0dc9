package runpkg

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/invar-ops/invar/internal/report"
)

// maxHeader bounds the text before the payload. Stock headers have 20 KB; a
// licence or a manifest of 100 000 files adds some megabytes.
const maxHeader = 32 << 20

var (
	generator = regexp.MustCompile(`(?m)^# This script was generated using Makeself (\S+)`)
	// headLines is how headers before 2.4.2 say where the payload begins:
	// head -397 "$1" | wc -c (2.1.0 to 2.1.2) or head -n 397 "$0" | wc -c.
	headLines   = regexp.MustCompile("`head -(?:n )?\"?([0-9]+)\"? \"\\$[01]\" \\| wc -c")
	compression = regexp.MustCompile(`(?m)^[ \t]*echo Compression: (\S+)`)
	encryption  = regexp.MustCompile(`(?m)^[ \t]*echo "?Encryption: (\w+)`)
)

func (p *Package) readHeader() error {
	head := make([]byte, min(p.Size, 64<<10))
	if err := p.readAt(head); err != nil {
		return err
	}
	if len(head) == 0 {
		return notPackage(p.Path, "an empty file", askAgain)
	}
	if !bytes.HasPrefix(head, []byte("#!")) {
		return sniff(p.Path, head)
	}
	if line, _, ok := bytes.Cut(head, []byte("\n")); ok && bytes.HasSuffix(line, []byte("\r")) {
		return p.damaged("line ends of Windows (CR LF) in the header", "plain line ends",
			"the file went through a text-mode transfer or git autocrlf, which also damages the payload: copy it again in binary mode")
	}
	for {
		done, err := p.parse(head)
		if done || err != nil {
			return err
		}
		if int64(len(head)) >= min(p.Size, maxHeader) {
			return p.noPayload(head)
		}
		more := make([]byte, min(p.Size, maxHeader, int64(len(head))*4))
		if err := p.readAt(more); err != nil {
			return err
		}
		head = more
	}
}

func (p *Package) readAt(buf []byte) error {
	n, err := p.src.ReadAt(buf, 0)
	if n == len(buf) || err == nil {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return p.damaged(fmt.Sprintf("%d bytes", n), fmt.Sprintf("%d bytes", p.Size), "something else changes the file")
	}
	return report.Problemf(report.Failed, "%s: %w", p.Path, err)
}

// noPayload explains a script whose header never ends.
func (p *Package) noPayload(head []byte) error {
	if !generator.Match(head) && !bytes.Contains(head, []byte("filesizes=")) {
		what := "a shell script"
		if line, _, ok := bytes.Cut(head, []byte("\n")); ok {
			what = "a script that begins with " + preview(line) + " and has no makeself header"
		}
		return notPackage(p.Path, what, "only makeself archives and invar's own packages can be opened")
	}
	if p.Size > maxHeader {
		return p.damaged("no end of the header", fmt.Sprintf("a payload within %d bytes", maxHeader), "ask where the file came from")
	}
	return p.damaged(fmt.Sprintf("%d bytes, which end inside the header", p.Size), "a payload behind the header", "the file is truncated: download it again")
}

// parse looks for the whole header in head, the start of the file. done is
// false when more of the file is needed.
func (p *Package) parse(head []byte) (done bool, err error) {
	lines, ok, err := p.countLines(head)
	if !ok || err != nil {
		return false, err
	}
	end := 0
	for range lines {
		i := bytes.IndexByte(head[end:], '\n')
		if i < 0 {
			return false, nil
		}
		end += i + 1
	}
	if nul := bytes.IndexByte(head[:end], 0); nul >= 0 {
		return false, p.damaged(fmt.Sprintf("binary data at byte %d", nul), fmt.Sprintf("%d lines of text", lines),
			"the header is damaged or was cut: download it again")
	}
	text := string(head[:end])
	p.Lines, p.Header = lines, int64(end)
	vars := shellVars(text, "")
	if _, ok := vars["filesizes"]; !ok {
		return false, p.damaged(fmt.Sprintf("a header of %d lines without filesizes", lines), "the sizes of the payloads", "ask where the file came from")
	}
	if err := p.checkLines(text, vars); err != nil {
		return false, err
	}
	if err := p.describe(text, vars); err != nil {
		return false, err
	}
	if err := p.layOut(vars); err != nil {
		return false, err
	}
	if err := p.findCodecs(text, vars); err != nil {
		return false, err
	}
	return true, nil
}

// countLines finds how many lines the header has, by the rule that the header
// itself uses: the variable skip, or the number in its head commands. Only the
// first one counts: an uncompressed payload may hold other packages.
func (p *Package) countLines(head []byte) (lines int, ok bool, err error) {
	text := string(head)
	found := ""
	if at := headLines.FindStringSubmatchIndex(text); at != nil {
		found = text[at[2]:at[3]]
		text = text[:at[0]]
	}
	if v, has := shellVars(text, "skip")["skip"]; has && !v.dynamic {
		found = v.value
	}
	if found == "" {
		return 0, false, nil
	}
	lines, err = strconv.Atoi(found)
	if err != nil || lines < 2 || lines > maxHeader {
		return 0, false, p.damaged("a header of "+preview([]byte(found))+" lines", "a number of lines", "ask where the file came from")
	}
	return lines, true, nil
}

// checkLines refuses a header that counts its own lines in two ways: which
// one holds would depend on what a shell does.
func (p *Package) checkLines(text string, vars map[string]shellVar) error {
	want := strconv.Itoa(p.Lines)
	for _, m := range headLines.FindAllStringSubmatch(text, -1) {
		if m[1] != want {
			return p.damaged("headers of "+want+" and of "+m[1]+" lines", "one number", "ask where the file came from")
		}
	}
	if v, ok := vars["skip"]; ok && (v.dynamic || v.conflict || v.value != want) {
		return p.damaged("several or computed values of skip", "one number", "ask where the file came from")
	}
	return nil
}

func (p *Package) describe(text string, vars map[string]shellVar) error {
	p.Label, p.Script = vars["label"].value, vars["script"].value
	p.ScriptArgs, p.TargetDir = vars["scriptargs"].value, vars["targetdir"].value
	p.Signed = vars["SIGNATURE"].value != ""
	p.Kind = KindMakeself
	if m := generator.FindStringSubmatch(text); m != nil {
		p.Makeself = m[1]
	}
	// Huawei's headers keep the name and the folder of the package for the
	// script, which makeself's do not.
	_, file := vars["name_of_file"]
	_, pwd := vars["pwd_of_file"]
	if file && pwd {
		p.Kind = KindHuawei
	}
	format, own := vars["invar_format"]
	if !own {
		return nil
	}
	p.Kind = KindInvar
	if format.value != "1" {
		return report.Problemf(report.Failed, "%s is a run package of a newer kind", p.Path).
			WithWant("format 1", "format "+format.value).WithHint("use a newer invar")
	}
	_, rest, ok := strings.Cut(text, "\n"+sectionManifest)
	body, _, ok2 := strings.Cut(rest, "\n"+sectionFiles)
	if !ok || !ok2 {
		return p.damaged("no manifest in the header", "a manifest", "download the package again")
	}
	m, err := decodeManifest([]byte(body))
	if err != nil {
		return report.Problemf(report.Failed, "%s: %w", p.Path, err).WithHint("download the package again")
	}
	p.Manifest = m
	return nil
}

// layOut finds the payloads and what the header says about each.
func (p *Package) layOut(vars map[string]shellVar) error {
	sizes, err := p.words(vars, "filesizes", `^[0-9]{1,18}$`)
	if err != nil {
		return err
	}
	if len(sizes) == 0 || len(sizes) > 1000 {
		return p.damaged(fmt.Sprintf("%d payloads", len(sizes)), "at least one", "download it again")
	}
	crcs, err1 := p.words(vars, "CRCsum", `^[0-9]{1,10}$`)
	md5s, err2 := p.words(vars, "MD5", `^[0-9a-fA-F]{32}$`)
	shas, err3 := p.words(vars, "SHA", `^[0-9a-fA-F]{64}$`)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	at := p.Header
	p.Payloads = nil
	for i, s := range sizes {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n == 0 || at+n < at {
			return p.damaged("a payload of "+s+" bytes", "a size above zero", "download it again")
		}
		p.Payloads = append(p.Payloads, Payload{Offset: at, Size: n, CRC: digest(crcs, i), MD5: digest(md5s, i), SHA256: digest(shas, i)})
		at += n
	}
	for name, list := range map[string][]string{"CRCsum": crcs, "MD5": md5s, "SHA": shas} {
		if len(list) != 0 && len(list) != len(sizes) {
			return p.damaged(fmt.Sprintf("%d values of %s", len(list), name), fmt.Sprintf("%d, one for each payload", len(sizes)), "download it again")
		}
	}
	if t, ok := vars["totalsize"]; ok && t.value != "" && t.value != strconv.FormatInt(at-p.Header, 10) {
		return p.damaged("totalsize "+t.value, fmt.Sprintf("%d, the sum of filesizes", at-p.Header), "download it again")
	}
	return p.checkEnd(at)
}

func (p *Package) checkEnd(end int64) error {
	switch got := fmt.Sprintf("%d bytes", p.Size); {
	case p.Size < end:
		return p.damaged(got, fmt.Sprintf("%d bytes", end),
			fmt.Sprintf("the file is truncated, %d bytes are missing: download it again", end-p.Size))
	case p.Size > end:
		return p.damaged(got, fmt.Sprintf("%d bytes", end),
			fmt.Sprintf("%d bytes follow the payload that the header knows nothing of: do not use this file", p.Size-end))
	}
	return nil
}

// words splits the value of a variable and checks each word. An absent or
// empty variable has none.
func (p *Package) words(vars map[string]shellVar, name, pattern string) ([]string, error) {
	v := vars[name]
	if v.conflict || v.dynamic {
		return nil, p.damaged("several or computed values of "+name, "one value", "ask where the file came from")
	}
	list := strings.Fields(v.value)
	re := regexp.MustCompile(pattern)
	for _, w := range list {
		if !re.MatchString(w) {
			return nil, p.damaged(name+" holds "+preview([]byte(w)), "text that matches "+pattern, "the header is damaged: download it again")
		}
	}
	return list, nil
}

// digest is the i-th of a list, or "" for makeself's way to say none: zeros.
func digest(list []string, i int) string {
	if i >= len(list) || strings.Trim(list[i], "0") == "" {
		return ""
	}
	return strings.ToLower(list[i])
}

func (p *Package) damaged(got, want, hint string) error {
	return report.Problemf(report.CheckFailed, "%s is a damaged run package", p.Path).WithWant(want, got).WithHint("%s", hint)
}
