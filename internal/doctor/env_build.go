package doctor

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/version"
)

// caVariables name a file of certificates for one client or another.
var caVariables = []string{"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS"}

// less orders two versions of any scheme by their digits; unknown is not less.
func less(a, b string) bool {
	x, err1 := version.Parse(version.Plain, a)
	y, err2 := version.Parse(version.Plain, b)
	return err1 == nil && err2 == nil && version.Less(x, y)
}

// tls: certificates that are named and not there, proxies that no client reads.
func (j *judge) tls() []Finding {
	var out []Finding
	for _, name := range caVariables {
		v := j.f.Env(name)
		if n, ok := j.f.Named[name]; v != "" && ok && (n.Missing || n.Empty) {
			out = append(out, stops("ca-file", name, "a file of certificates", v+" does not exist or is empty: every download fails to verify",
				"unset "+name+", or put the certificates of your proxy there", "SSL: CERTIFICATE_VERIFY_FAILED"))
		}
	}
	for _, name := range []string{"http_proxy", "https_proxy"} {
		low, up := j.f.Env(name), j.f.Env(strings.ToUpper(name))
		if low != "" && up != "" && low != up {
			out = append(out, caution("proxy-two", name, "lower and upper case spellings differ: curl reads the one, other clients the other",
				"export both with one value", "curl and requests documentation"))
		}
		v := orText(low, up)
		if v == "" {
			continue
		}
		if u, err := url.Parse(v); err != nil || u.Host == "" {
			out = append(out, stops("proxy-form", name, "scheme://host:port", "a value that is no such URL", "export "+name+"=http://HOST:PORT", "pip: invalid proxy URL"))
		}
		if low == "" && name == "http_proxy" {
			out = append(out, caution("proxy-case", "HTTP_PROXY", "only the upper case spelling is set, which curl ignores for http", "export http_proxy=$HTTP_PROXY", "curl documentation"))
		}
		if orText(j.f.Env("no_proxy"), j.f.Env("NO_PROXY")) == "" {
			out = append(out, caution("no-proxy", "no_proxy", "a proxy is set and nothing is excepted: requests to localhost (a server under test) go to it", "export no_proxy=localhost,127.0.0.1", "curl and requests documentation"))
			break
		}
	}
	return out
}

// pip: a build overlay that outlived its build, another Python's pip, half an
// installation, a Python that the system manages.
func (j *judge) pip() []Finding {
	var out []Finding
	p := j.f.Python
	for _, name := range []string{"PATH", "PYTHONPATH", "LD_LIBRARY_PATH"} {
		if strings.Contains(j.f.Env(name), "pip-build-env-") {
			out = append(out, stops("pip-overlay", name, "no entries of pip's build isolation", "it names a pip-build-env overlay, which is deleted after the build: python3 and pip3 point into it",
				"build with: pip install --no-build-isolation -e .", "vllm-ascend issue 3998"))
		}
	}
	for _, t := range p.Twice {
		out = append(out, stops("dist-twice", "site-packages", "one version of each", t+": an installation was cut short or mixed",
			p.installer()+" --force-reinstall --no-deps "+strings.Fields(t)[0], "pip show and import then disagree"))
	}
	if p.FileTorch != "" && p.HasTorch() && !sameTorch(p.FileTorch, p.Torch.Version) {
		out = append(out, stops("torch-files", "torch", "metadata and files of one version", "metadata says "+p.Torch.Version+", torch/version.py says "+p.FileTorch+": import gives the second",
			p.installer()+" --force-reinstall --no-deps torch=="+p.Torch.Version, "pip list against import"))
	}
	if p.PipOf != "" && p.Exe != "" && !samePython(p, p.PipOf) {
		out = append(out, caution("pip-other", "pip on PATH", p.PipPath+" installs for "+p.PipOf+", not for "+p.Exe,
			"use "+p.Exe+" -m pip", "pip list against import"))
	}
	if p.Managed != "" && !p.Venv && (p.HasTorch() || j.t.Flavour == "ascend") { // else an environment is made anyway
		out = append(out, caution("pip-managed", "pip", p.Exe+" is managed by the system ("+p.Managed+"): pip refuses to install into it",
			p.Exe+" -m venv /opt/venv && /opt/venv/bin/pip install ...", "PEP 668"))
	}
	return out
}

// sameTorch compares without the local label, which metadata may leave out.
func sameTorch(a, b string) bool {
	x, err1 := version.Parse(version.PEP440, a)
	y, err2 := version.Parse(version.PEP440, b)
	return err1 != nil || err2 != nil || version.Equal(x, y)
}

// samePython: /usr/bin/python3 and /usr/bin/python3.11 are one.
func samePython(p Python, exe string) bool {
	return exe == p.Exe || path.Dir(exe) == path.Dir(p.Exe) || strings.HasPrefix(exe, p.Prefix+"/bin/")
}

// scripts: what the source tree in the working directory brings along.
func (j *judge) scripts() []Finding {
	s := j.f.Scripts
	var out []Finding
	if len(s.CRLF) > 0 {
		out = append(out, stops("crlf", "scripts", "LF line ends", sample(s.CRLF)+" end lines with CR LF: /bin/bash^M: bad interpreter",
			`sed -i 's/\r$//' `+strings.Join(s.CRLF[:min(3, len(s.CRLF))], " ")+"; git config core.autocrlf input", "files that went through Windows"))
	}
	if len(s.Nounset) > 0 && j.t.Flavour == "ascend" {
		out = append(out, caution("nounset", "scripts", sample(s.Nounset)+" source set_env.sh while set -u holds: it stops at an unbound variable",
			"set +u; source .../set_env.sh; set -u", setEnvSource))
	}
	if len(s.Overlays) > 0 {
		out = append(out, stops("cmake-overlay", "CMake cache", "no paths of pip's build isolation", sample(s.Overlays)+" names a pip-build-env overlay that is gone: No rule to make target .../libc10.so",
			"rm -r "+path.Dir(s.Overlays[0]), "vllm-ascend issues 3998 and 1303"))
	}
	if len(s.Isolated) > 0 && !slices.Contains([]string{"0", "off", "false", "no"}, strings.ToLower(j.f.Env("PIP_NO_BUILD_ISOLATION"))) {
		out = append(out, caution("isolation", "build isolation", sample(s.Isolated)+" asks for torch in build-system.requires: pip then builds against another torch, in an overlay",
			"pip install --no-build-isolation ...   (uv: --no-build-isolation)", "vllm-ascend issues 3832 and 3403"))
	}
	return out
}

func sample(all []string) string {
	if len(all) <= 3 {
		return strings.Join(all, ", ")
	}
	return strings.Join(all[:3], ", ") + " and " + itoa(len(all)-3) + " more"
}
