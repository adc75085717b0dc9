package probe

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/report"
)

var (
	// A password in an address: https://user:password@host, or a token in the
	// place of the user.
	userinfoRE = regexp.MustCompile(`\b[a-zA-Z][a-zA-Z0-9+.-]*://([^/\s@:]*):([^/\s@]+)@`)
	tokenURLRE = regexp.MustCompile(`\bhttps?://([A-Za-z0-9_-]{16,})@`)
	// Names of variables that hold a secret.
	secretRE = regexp.MustCompile(`(?i)(?:^|_)(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIALS?)(?:$|_)`)
	// An assignment in the history of a build.
	assignRE = regexp.MustCompile(`\b([A-Za-z_][A-Za-z0-9_]*)=("[^"]*"|'[^']*'|\S+)`)
)

// Files with credentials of package managers and registries: of the system, and
// in the home of each user.
var (
	secretFiles = []string{"/etc/pip.conf", "/etc/apt/auth.conf", "/etc/uv/uv.toml"}
	secretHomes = []string{"/root", "/home/*"}
	secretNames = []string{".pip/pip.conf", ".config/pip/pip.conf", ".netrc", ".pypirc", ".docker/config.json", ".git-credentials", ".config/uv/uv.toml"}
)

// harmless are values that stand where a secret would.
var harmless = []string{"", "true", "false", "0", "1", "none", "null"}

// imageSecrets looks for credentials in what everyone who pulls the image can
// read: environment, labels, history, settings of package managers.
func (p *prober) imageSecrets() report.Check {
	const name, want = "credentials", "none in environment, labels, history and settings"
	c := p.Image.Config
	var found []string
	for _, kv := range c.Config.Env {
		k, v, _ := strings.Cut(kv, "=")
		found = add(found, secretsIn("ENV "+k, k, v)...)
	}
	for _, k := range slices.Sorted(maps.Keys(c.Config.Labels)) {
		found = add(found, secretsIn("LABEL "+k, "", c.Config.Labels[k])...)
	}
	for n, h := range c.History {
		line := fmt.Sprintf("history, line %d", n+1)
		var here []string
		for _, m := range assignRE.FindAllStringSubmatch(h.CreatedBy, -1) {
			here = add(here, secretsIn(line+": "+m[1], m[1], strings.Trim(m[2], `"'`))...)
		}
		if len(here) == 0 {
			here = secretsIn(line, "", h.CreatedBy)
		}
		found = add(found, here...)
	}
	files := slices.Clone(secretFiles)
	for _, home := range secretHomes {
		for _, n := range secretNames {
			files = append(files, p.Root.Glob(path.Join(home, n))...)
		}
	}
	for _, f := range files {
		found = add(found, p.secretFile(f)...)
	}
	k := check(OfImage, name, len(found) == 0, want, firstNonEmpty(strings.Join(found, "\n"), "none"))
	k.Hint = hintUnless(k, "change them: whoever pulled the image has them; give them to a build with --secret id=pip.conf,src=FILE")
	return k
}

// secretsIn names what is secret in a value, without the secret.
func secretsIn(where, name, value string) []string {
	var out []string
	for _, m := range userinfoRE.FindAllStringSubmatch(value, -1) {
		if strings.HasPrefix(m[2], "$") || strings.Trim(m[2], "*") == "" {
			continue // a variable, or blotted out
		}
		out = append(out, fmt.Sprintf("%s: an address with the password of %q", where, m[1]))
	}
	if len(out) == 0 && tokenURLRE.MatchString(value) {
		out = append(out, where+": an address with a token")
	}
	if len(out) == 0 && secretRE.MatchString(name) && !slices.Contains(harmless, strings.ToLower(value)) && !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "$") {
		out = append(out, fmt.Sprintf("%s: a value of %d characters", where, len(value)))
	}
	return out
}

func (p *prober) secretFile(file string) []string {
	b, err := p.Root.ReadFile(file)
	if err != nil {
		return nil
	}
	out := secretsIn(file, "", string(b))
	switch {
	case len(out) > 0:
		return out
	case path.Base(file) == ".netrc" && strings.Contains(string(b), "password"),
		path.Base(file) == "auth.conf" && strings.Contains(string(b), "password"),
		path.Base(file) == ".pypirc" && strings.Contains(string(b), "password"),
		strings.HasSuffix(file, ".docker/config.json") && strings.Contains(string(b), `"auth"`):
		return []string{file + ": a password"}
	}
	return nil
}
