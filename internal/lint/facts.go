package lint

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/deployment"
)

// Facts are what is known of one start of a server. What is not in Values is
// unknown; Assumed are those that come from the engine's defaults.
type Facts struct {
	Engine   string            `json:"engine"`
	Version  string            `json:"version,omitempty"` // of the engine; "" is unknown
	Model    string            `json:"model,omitempty"`
	Families []string          `json:"families,omitempty"`
	Values   map[string]string `json:"values"`
	Assumed  []string          `json:"assumed,omitempty"`

	validated []string // devices on which upstream tested the model
	known     bool     // the model's name is known
}

// Given is what the user knows beside the text.
type Given struct {
	Version string // of the engine
	Device  string // cuda, ascend or cpu
	Arch    string // compute capability "9.0", or "ascend310p"
	Family  string // of the model: dense, moe, mla, ...
	NCCL    string
}

// factsOf turns arguments and environment into facts.
func (k knowledge) factsOf(d deployment.Deployment, g Given) (Facts, []string) {
	name, args := d.Engine()
	f := Facts{Engine: name, Version: g.Version, Values: map[string]string{"engine": name}}
	i := slices.IndexFunc(k.engines, func(e engine) bool { return e.Name == name })
	if i < 0 {
		return f, []string{"no known engine is started"}
	}
	e := k.engines[i]
	problems, open := e.arguments(args, f.Values)
	for _, v := range e.Environment {
		if value, ok := d.Env[v.Name]; ok {
			f.Values[v.Fact] = value
		}
	}
	k.defaults(e, &f, open, d.OpenEnv)
	f.fromContainer(d)
	for fact, value := range map[string]string{"device": g.Device, "arch": g.Arch, "nccl": g.NCCL} {
		if value != "" {
			f.Values[fact] = value
		}
	}
	if f.Values["device"] == "npu" {
		f.Values["device"] = "ascend"
	}
	f.guessDevice(d)
	k.modelOf(&f, g)
	if _, ok := f.Values["quantization"]; !ok {
		f.Values["quantization"] = quantizationOf(f.Model)
	}
	return f, problems
}

// defaults fills in what the engine does when nothing is said. Where more may be
// said than the text shows, nothing is known.
func (k knowledge) defaults(e engine, f *Facts, openArgs, openEnv bool) {
	set := func(fact, value string, open bool) {
		if _, ok := f.Values[fact]; !ok && value != "" && !open {
			f.Values[fact] = value
			f.Assumed = append(f.Assumed, fact)
		}
	}
	for _, fl := range e.Flags {
		set(fl.Fact, fl.Default, openArgs)
		for _, j := range fl.JSON {
			set(j.Fact, j.Default, openArgs)
		}
	}
	for _, v := range e.Environment {
		set(v.Fact, v.Default, openEnv)
	}
}

// arguments reads flags into values. Unknown flags are passed over; a value
// that is missing or is no JSON is a problem, never a crash. open: a variable
// that nothing sets stands where flags stand, or a file holds more of them.
func (e engine) arguments(args []string, values map[string]string) (problems []string, open bool) {
	for i := 0; i < len(args); i++ {
		word := args[i]
		if word == "" && (i > 0 || e.Positional == "" || len(args) == 1) {
			open = true
			continue
		}
		if !strings.HasPrefix(word, "-") {
			if i == 0 && e.Positional != "" {
				values[e.Positional] = word
			}
			continue
		}
		name, value, attached := strings.Cut(word, "=")
		if slices.Contains(e.Files, name) {
			if !attached && i+1 < len(args) {
				i++
				value = args[i]
			}
			open = true
			problems = append(problems, name+" "+value+" was not read: arguments in it may change the answer")
			continue
		}
		fl, path := e.find(name)
		switch {
		case fl == nil:
			continue
		case fl.Switch != "":
			values[fl.Fact] = fl.Switch
			continue
		case !attached:
			if i+1 >= len(args) {
				problems = append(problems, name+" has no value: the command is cut off")
				continue
			}
			i++
			value = args[i]
		}
		if fl.Set != "" {
			values[fl.Fact] = fl.Set
			continue
		}
		if path != "" { // --compilation-config.pass_config.enable_sp true
			fl.inner(map[string]any{path: value}, values)
			continue
		}
		values[fl.Fact] = value
		if len(fl.JSON) > 0 && strings.HasPrefix(strings.TrimSpace(value), "{") {
			var v map[string]any
			if err := json.Unmarshal([]byte(value), &v); err != nil {
				problems = append(problems, fmt.Sprintf("the value of %s is no JSON: %v", name, err))
				continue
			}
			fl.inner(flatten("", v), values)
		}
	}
	return problems, open
}

// find is the flag called name; "--flag.key" gives the rest as a path.
func (e engine) find(name string) (*flag, string) {
	base, path, dotted := strings.Cut(name, ".")
	base = strings.ReplaceAll(base, "_", "-")
	for i := range e.Flags {
		if slices.Contains(e.Flags[i].Names, base) && (!dotted || len(e.Flags[i].JSON) > 0) {
			return &e.Flags[i], path
		}
	}
	return nil, ""
}

// inner takes the keys of a JSON value that are facts of their own.
func (fl *flag) inner(flat map[string]any, values map[string]string) {
	for _, j := range fl.JSON {
		if v, ok := flat[j.Key]; ok {
			values[j.Fact] = fmt.Sprint(v)
		}
	}
}

func flatten(prefix string, v map[string]any) map[string]any {
	out := map[string]any{}
	for k, val := range v {
		if m, ok := val.(map[string]any); ok {
			maps.Copy(out, flatten(prefix+k+".", m))
			continue
		}
		out[prefix+k] = val
	}
	return out
}

// modelOf looks the model's name up.
func (k knowledge) modelOf(f *Facts, g Given) {
	f.Model = f.Values["model"]
	for _, m := range k.models {
		if m.re.MatchString(f.Model) {
			f.Families, f.validated, f.known = m.Families, m.Validated, true
			break
		}
	}
	if g.Family != "" {
		f.Families = strings.Split(g.Family, ",")
	}
}

// quantizationOf reads the form of the weights out of a model's name; a name
// without one of the usual words says "none" only for names with a size in them.
func quantizationOf(model string) string {
	lower := strings.ToLower(model)
	for _, word := range []string{"awq", "gptq", "fp8", "nvfp4", "mxfp4", "w8a8", "w4a16"} {
		if strings.Contains(lower, word) {
			return word
		}
	}
	return "none"
}
