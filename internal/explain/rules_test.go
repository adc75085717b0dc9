package explain

import (
	"context"
	"strings"
	"testing"
)

func diagnose(t *testing.T, log string) Diagnosis {
	t.Helper()
	d, err := Log(context.Background(), strings.NewReader(log), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// verdictOf is the verdict that an example of a rule of this level must have.
func verdictOf(l Level) Verdict {
	switch l {
	case Wrapper:
		return Elsewhere
	case Success, Progress:
		return Succeeded
	}
	return Found
}

// TestExamples holds every rule to its own example: no other rule may win
// there, and no text that the rule calls unlike may match it.
func TestExamples(t *testing.T) {
	t.Parallel()
	rules, err := Rules()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := loadSet(); err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		t.Run(r.ID, func(t *testing.T) {
			t.Parallel()
			d := diagnose(t, r.Example)
			if want := verdictOf(r.Level); d.Verdict != want {
				t.Errorf("verdict %s (rule %q), want %s", d.Verdict, d.Rule, want)
			}
			if d.Verdict != Succeeded && d.Rule != r.ID {
				t.Errorf("rule %q won, want %s", d.Rule, r.ID)
			}
			for _, text := range r.Unlike {
				if d := diagnose(t, text); d.Rule == r.ID {
					t.Errorf("matches %q, which it is not", text)
				}
			}
		})
	}
}

// TestWrapped puts every example between what make, ninja, CMake, pip and
// docker write around a failing program: the cause must stay the cause.
func TestWrapped(t *testing.T) {
	t.Parallel()
	const before = `#11 [7/9] RUN python3 -m pip install -v .
#12 0.412 Processing /src
  Preparing metadata (pyproject.toml): finished with status 'done'
Building wheels for collected packages: x
  Building wheel for x (pyproject.toml): started
  -- Configuring done
  -- Build files have been written to: /build
  [1/3] Building CXX object a.o
`
	const after = `
gmake[2]: *** [CMakeFiles/Makefile2:412: CMakeFiles/x.dir/all] Error 2
gmake[2]: *** Waiting for unfinished jobs....
[100%] Built target y
gmake: *** [Makefile:136: all] Error 2
ninja: build stopped: subcommand failed.
Traceback (most recent call last):
  File "/src/setup.py", line 331, in <module>
    setup(
  File "/src/setup.py", line 241, in build_extensions
    subprocess.check_call(["cmake", "--build", "."])
subprocess.CalledProcessError: Command '['cmake', '--build', '.']' returned non-zero exit status 2.
  error: subprocess-exited-with-error
  × Building wheel for x (pyproject.toml) did not run successfully.
  │ exit code: 1
  ╰─> See above for output.
  note: This error originates from a subprocess, and is likely not a problem with pip.
  ERROR: Failed building wheel for x
ERROR: Failed to build installable wheels for some pyproject.toml based projects (x)
#12 ERROR: process "/bin/sh -c python3 -m pip install -v ." did not complete successfully: exit code: 1
`
	rules, err := Rules()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		if r.Level != Cause && r.Level != Weak && r.Level != Silent {
			continue
		}
		d := diagnose(t, before+r.Example+after)
		// Inside a build a missing module is one of the isolated environment.
		isolated := d.Rule == "build-isolation-no-torch" && strings.Contains(r.Example, "No module named")
		if d.Verdict != Found || d.Rule != r.ID && !isolated {
			t.Errorf("%s: wrapped up the answer is %s %s", r.ID, d.Verdict, d.Rule)
		}
	}
}
