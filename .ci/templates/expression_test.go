package templates

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/rhysd/actionlint"
)

var placeholder = regexp.MustCompile(`\$\{\{(.*?)\}\}`)

// fill replaces each ${{ }} in text by its value.
func fill(text string, ctx map[string]any) (string, error) {
	var failed error
	out := placeholder.ReplaceAllStringFunc(text, func(m string) string {
		v, err := evaluate(placeholder.FindStringSubmatch(m)[1], ctx)
		if err != nil {
			failed = fmt.Errorf("%s: %w", m, err)
		}
		return asText(v)
	})
	return out, failed
}

// holds evaluates the if: of a step, which is success() && it, unless it asks
// for the state itself.
func holds(condition string, ctx map[string]any) (bool, error) {
	condition = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(condition), "${{"), "}}")
	if condition == "" {
		condition = "success()"
	} else if !regexp.MustCompile(`\b(always|success|failure|cancelled)\(\)`).MatchString(condition) {
		condition = "success() && (" + condition + ")"
	}
	v, err := evaluate(condition, ctx)
	return truth(v), err
}

func evaluate(text string, ctx map[string]any) (any, error) {
	node, perr := actionlint.NewExprParser().Parse(actionlint.NewExprLexer(text + "}}"))
	if perr != nil {
		return nil, perr
	}
	return value(node, ctx)
}

func value(node actionlint.ExprNode, ctx map[string]any) (any, error) {
	switch n := node.(type) {
	case *actionlint.StringNode:
		return n.Value, nil
	case *actionlint.BoolNode:
		return n.Value, nil
	case *actionlint.IntNode:
		return n.Value, nil
	case *actionlint.NullNode:
		return nil, nil
	case *actionlint.VariableNode:
		v, ok := ctx[n.Name]
		if !ok {
			return nil, fmt.Errorf("no context %q", n.Name)
		}
		return v, nil
	case *actionlint.ObjectDerefNode:
		receiver, err := value(n.Receiver, ctx)
		object, _ := receiver.(map[string]any)
		return object[n.Property], err // a property that is not there is null, as on GitHub
	case *actionlint.NotOpNode:
		v, err := value(n.Operand, ctx)
		return !truth(v), err
	case *actionlint.LogicalOpNode:
		left, err := value(n.Left, ctx)
		if err != nil || truth(left) == (n.Kind == actionlint.LogicalOpNodeKindOr) {
			return left, err
		}
		return value(n.Right, ctx)
	case *actionlint.CompareOpNode:
		left, err := value(n.Left, ctx)
		if err != nil {
			return nil, err
		}
		right, err := value(n.Right, ctx)
		switch n.Kind {
		case actionlint.CompareOpNodeKindEq:
			return strings.EqualFold(asText(left), asText(right)), err
		case actionlint.CompareOpNodeKindNotEq:
			return !strings.EqualFold(asText(left), asText(right)), err
		}
	case *actionlint.FuncCallNode:
		if n.Callee == "format" {
			return formatted(n.Args, ctx)
		}
		failed, _ := ctx["failed"].(bool)
		switch n.Callee {
		case "always":
			return true, nil
		case "success":
			return !failed, nil
		case "failure":
			return failed, nil
		}
		return nil, fmt.Errorf("no function %q", n.Callee)
	}
	return nil, fmt.Errorf("no value for %T", node)
}

// formatted is format('{0}/{1}', a, b).
func formatted(args []actionlint.ExprNode, ctx map[string]any) (any, error) {
	out := ""
	for i, a := range args {
		v, err := value(a, ctx)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			out = asText(v)
			continue
		}
		out = strings.ReplaceAll(out, fmt.Sprintf("{%d}", i-1), asText(v))
	}
	return out, nil
}

func truth(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case int:
		return v != 0
	}
	return true
}

func asText(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}
