package probe

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// goArches are the names that images use for architectures.
var goArches = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// labelPrefix begins the labels that invar image build sets.
const labelPrefix = "io.github.invar-ops."

// image asks what the image says of itself, and whether that agrees with what
// is in its layers.
func (p *prober) image() []report.Check {
	out := []report.Check{p.imageLayers(), p.imagePlatform(), p.imageLabels(), p.imageInvariant(), p.imageHome()}
	out = append(out, p.imageSecrets(), p.imageHealth(), p.imageUser(), p.imageLeftovers())
	if h := p.Image.Hidden; h > 0 {
		p.extra = append(p.extra, Observation{"image", megabytes(h) + " of files that later layers remove are in it all the same"})
	}
	for _, r := range p.Image.Refused {
		p.extra = append(p.extra, Observation{"not unpacked", r})
	}
	return out
}

// imageLayers passes when it is reached: a digest that is wrong ended the probe.
func (p *prober) imageLayers() report.Check {
	var sum int64
	for _, l := range p.Image.Layers {
		sum += l.Bytes
	}
	return check(OfImage, "layers", true, "each with its digest", fmt.Sprintf("%s, %s", count(len(p.Image.Layers), "layer"), megabytes(sum)))
}

func (p *prober) imagePlatform() report.Check {
	c := p.Image.Config
	want := "linux, and a CPU that " + p.target.Name + " is made for: " + strings.Join(p.target.Arches, ", ")
	name, known := goArches[c.Architecture]
	ok := c.OS == "linux" && known && slices.Contains(p.target.Arches, name)
	got := p.Image.Platform
	if ok && name != p.machine {
		ok, want, got = false, "programs for "+name+", as the configuration says", "programs for "+p.machine
	}
	k := check(OfImage, "platform", ok, want, got)
	k.Hint = hintUnless(k, "build it with --platform, from a base of that platform")
	return k
}

// built reports whether labels say that invar image build made the image.
func (p *prober) built() bool {
	_, ok := p.Image.Config.Config.Labels[labelPrefix+"run-package.digest"]
	return ok
}

// imageLabels compares the labels with the receipt in the layers.
func (p *prober) imageLabels() report.Check {
	labels := p.Image.Config.Config.Labels
	r := p.receipt
	facts := [][2]string{
		{"target", r.Target},
		{"contract", r.Contract},
		{"torch", r.Python.Torch},
		{"run-package", r.RunPackage.Name},
		{"run-package.digest", "sha256:" + strings.TrimPrefix(r.RunPackage.SHA256, "sha256:")},
		{"wheel", r.Wheel.Name},
		{"wheel.digest", "sha256:" + strings.TrimPrefix(r.Wheel.SHA256, "sha256:")},
	}
	if rel := r.Release; rel != nil {
		facts = append(facts, [2]string{"cann", rel.CANNVersion}, [2]string{"soc", rel.SoC})
	}
	var wrong, missing []string
	n := 0
	for _, f := range facts {
		got, ok := labels[labelPrefix+f[0]]
		switch {
		case !ok:
			missing = append(missing, f[0])
		case f[1] != "" && !agrees(f[0], got, f[1]):
			wrong = append(wrong, fmt.Sprintf("%s is %q, and %q in the receipt", labelPrefix+f[0], got, f[1]))
		default:
			n++
		}
	}
	if len(missing) == len(facts) {
		return skipped(OfImage, "labels", "the image has none of invar's: it was not made by invar image build")
	}
	if p.built() {
		for _, m := range missing {
			if m == "soc" || m == "cann" || m == "contract" { // a family may have none
				continue
			}
			wrong = append(wrong, "no "+labelPrefix+m)
		}
	}
	c := check(OfImage, "labels", len(wrong) == 0, "what the receipt in the layers says", firstNonEmpty(strings.Join(wrong, "\n"), fmt.Sprintf("%d agree", n)))
	c.Hint = hintUnless(c, "the labels are of another build: build the image again, and let labels come from invar image build")
	return c
}

// agrees compares a label with a fact. A build argument may name CANN by the
// first parts of its version, and an SoC in other letters.
func agrees(fact, label, want string) bool {
	switch fact {
	case "soc":
		return strings.EqualFold(label, want)
	case "cann":
		return label == want || strings.HasPrefix(want, label+".")
	}
	return label == want
}

// imageInvariant wants the setting of a server out of the image: with it, every
// server would be slow, and one without operators would not start.
func (p *prober) imageInvariant() report.Check {
	const name, want = "VLLM_BATCH_INVARIANT", "not set in the image, but by who starts a server"
	for _, kv := range p.Image.Config.Config.Env {
		if n, v, _ := strings.Cut(kv, "="); n == name && v != "" && v != "0" {
			c := check(OfImage, name, false, want, kv)
			c.Hint = "it is a setting of the build only: give it to RUN, or as ARG, and not as ENV; look at the base image, too"
			return c
		}
	}
	return check(OfImage, name, true, want, "not set")
}

// imageHome wants invar in a container of this image to find the prefix.
func (p *prober) imageHome() report.Check {
	home := run.Getenv(p.Image.Config.Config.Env, "INVAR_HOME")
	want := p.Prefix + ", where the operators are"
	uid, _, _ := p.user()
	switch {
	case home != "" && p.Root.Real(home) == p.Root.Real(p.Prefix), home == "" && p.Prefix == "/opt/invar" && uid == 0:
		return check(OfImage, "INVAR_HOME", true, want, firstNonEmpty(home, "unset: it is the default for root"))
	}
	c := check(OfImage, "INVAR_HOME", false, want, firstNonEmpty(home, "unset, and the default of this user is another"))
	c.Hint = "ENV INVAR_HOME=" + p.Prefix
	return c
}

func (p *prober) imageHealth() report.Check {
	const name, want = "health check", "invar probe --level 1, or one of your own"
	h := p.Image.Config.Config.Healthcheck
	switch {
	case h != nil && len(h.Test) > 0 && h.Test[0] != "NONE":
		return check(OfImage, name, true, want, strings.Join(h.Test, " "))
	case h != nil:
		return skipped(OfImage, name, "the image switches it off")
	case p.built():
		c := check(OfImage, name, false, want, "none")
		c.Hint = "OCI's configuration has no field for it: buildah and podman keep it with --format docker"
		return c
	}
	return skipped(OfImage, name, `the image has none; HEALTHCHECK CMD ["invar", "probe", "--level", "1"] needs no Python and no device`)
}

// user is who the image runs as: its number, or that of its name in the image's
// own passwd. known is false when neither tells.
func (p *prober) user() (uid, gid int, known bool) {
	user, group, _ := strings.Cut(p.Image.Config.Config.User, ":")
	if user == "" {
		return 0, 0, true
	}
	gid = -1
	if n, err := strconv.Atoi(group); err == nil {
		gid = n
	}
	if n, err := strconv.Atoi(user); err == nil {
		return n, gid, true
	}
	b, err := p.Root.ReadFile("/etc/passwd")
	if err != nil {
		return -1, -1, user == "root"
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) < 4 || f[0] != user {
			continue
		}
		n, err := strconv.Atoi(f[2])
		if g, gerr := strconv.Atoi(f[3]); gid < 0 && gerr == nil {
			gid = g
		}
		return n, gid, err == nil
	}
	return -1, -1, false
}

// imageUser wants the user of the image to be able to read the installation.
func (p *prober) imageUser() report.Check {
	said := firstNonEmpty(p.Image.Config.Config.User, "root")
	const name, want = "user", "one that exists and may read the operators"
	uid, gid, known := p.user()
	if !known {
		c := check(OfImage, name, false, want, said+", who is not in /etc/passwd of the image")
		c.Hint = "USER 65532:65532 needs no entry, or add the user"
		return c
	}
	closed := slices.Concat(p.Image.Unreadable(p.receipt.Dir(), uid, gid), p.Image.Unreadable(p.receipt.Hook.Path, uid, gid))
	for dir := p.receipt.Dir(); dir != "/"; dir = path.Dir(dir) {
		if !p.Image.Enters(dir, uid, gid) {
			closed = add(closed, dir)
		}
	}
	if len(closed) > 0 {
		c := check(OfImage, name, false, want, fmt.Sprintf("%s may not read %s%s", said, closed[0], because(more(len(closed)-1))))
		c.Hint = "chmod -R a+rX " + p.Prefix + " in the RUN that installs"
		return c
	}
	return check(OfImage, name, true, want, said)
}

// imageLeftovers names what a build left. It makes an image larger, not wrong:
// only in an image that says that invar built it, that is a failure.
func (p *prober) imageLeftovers() report.Check {
	const name, want = "leftovers", "no compilers, caches, lists and logs of the build"
	var found, fixes []string
	for _, l := range p.Image.Leftover {
		if l.Rule == "compilers" && p.onNPU() {
			continue // CANN's own base images hold them
		}
		text := fmt.Sprintf("%s: %s, %s in %s", l.What, megabytes(l.Bytes), count(l.Files, "file"), l.Path)
		found, fixes = append(found, text), append(fixes, l.Fix)
		if !p.built() {
			p.extra = append(p.extra, Observation{"leftover", text})
		}
	}
	if len(found) > 0 && !p.built() {
		c := skipped(OfImage, name, count(len(found), "kind")+" of them, listed below; invar did not build this image, so that is its owner's choice")
		c.Hint = strings.Join(fixes, "\n")
		return c
	}
	c := check(OfImage, name, len(found) == 0, want, firstNonEmpty(strings.Join(found, "\n"), "none"))
	c.Hint = hintUnless(c, strings.Join(fixes, "\n"))
	return c
}

func megabytes(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d kB", (n+1023)>>10)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
}
