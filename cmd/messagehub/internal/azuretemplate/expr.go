package azuretemplate

import (
	"fmt"
	"strconv"
	"strings"
)

// An expr is an expression of a template.
type expr interface {
	arm() string
	bicep(indent string) string
}

type (
	paramRef string
	call     struct {
		function string
		args     []any
	}
	property struct { // of a value
		of   expr
		name string
	}
	operation struct { // of two values; in ARM a function
		function, operator string
		left, right        any
	}
	negation   struct{ of expr }
	choice     struct{ condition, yes, no any }
	text       []any // strings and expressions, one after the other
	resourceID struct{ of *resource }
	runtime    struct { // a property that a resource has once it exists
		of   *resource
		path string // below properties
	}
	moduleOutput struct {
		of   *module
		name string
	}
)

func (p paramRef) arm() string         { return "parameters('" + string(p) + "')" }
func (p paramRef) bicep(string) string { return string(p) }

func (c call) arm() string {
	args := make([]string, len(c.args))
	for i, a := range c.args {
		args[i] = armOperand(a)
	}
	return c.function + "(" + strings.Join(args, ", ") + ")"
}

func (c call) bicep(indent string) string {
	args := make([]string, len(c.args))
	for i, a := range c.args {
		args[i] = bicepValue(a, indent)
	}
	return c.function + "(" + strings.Join(args, ", ") + ")"
}

func (p property) arm() string                { return p.of.arm() + "." + p.name }
func (p property) bicep(indent string) string { return p.of.bicep(indent) + "." + p.name }

func (o operation) arm() string {
	return o.function + "(" + armOperand(o.left) + ", " + armOperand(o.right) + ")"
}

func (o operation) bicep(indent string) string {
	return bicepValue(o.left, indent) + " " + o.operator + " " + bicepValue(o.right, indent)
}

func (n negation) arm() string                { return "not(" + n.of.arm() + ")" }
func (n negation) bicep(indent string) string { return "!" + n.of.bicep(indent) }

func (c choice) arm() string {
	return "if(" + armOperand(c.condition) + ", " + armOperand(c.yes) + ", " + armOperand(c.no) + ")"
}

func (c choice) bicep(indent string) string {
	return bicepValue(c.condition, indent) + " ? " + bicepValue(c.yes, indent) + " : " + bicepValue(c.no, indent)
}

func (t text) arm() string {
	format, args := "", []string{}
	for _, part := range t {
		if s, ok := part.(string); ok {
			format += strings.NewReplacer("{", "{{", "}", "}}").Replace(s)
			continue
		}
		format += "{" + strconv.Itoa(len(args)) + "}"
		args = append(args, armOperand(part))
	}
	return "format(" + strings.Join(append([]string{quote(format)}, args...), ", ") + ")"
}

func (t text) bicep(indent string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for _, part := range t {
		if s, ok := part.(string); ok {
			b.WriteString(escapeBicep(s))
			continue
		}
		b.WriteString("${" + bicepValue(part, indent) + "}")
	}
	b.WriteByte('\'')
	return b.String()
}

func (r resourceID) arm() string {
	args := []string{quote(r.of.kind)}
	for _, s := range r.of.segments() {
		args = append(args, armOperand(s))
	}
	return "resourceId(" + strings.Join(args, ", ") + ")"
}

func (r resourceID) bicep(string) string { return r.of.symbol + ".id" }

func (r runtime) arm() string {
	return "reference(" + resourceID{r.of}.arm() + ", " + quote(r.of.api) + ")." + r.path
}

func (r runtime) bicep(string) string { return r.of.symbol + ".properties." + r.path }

func (m moduleOutput) arm() string {
	return "reference(" + m.of.id() + ", " + quote(deploymentsAPI) + ").outputs." + m.name + ".value"
}

func (m moduleOutput) bicep(string) string { return m.of.symbol + ".outputs." + m.name }

// deploymentsAPI is the version of nested deployments, which modules are in ARM.
const deploymentsAPI = "2022-09-01"

func (m *module) id() string {
	return "resourceId('Microsoft.Resources/deployments', " + quote(m.symbol) + ")"
}

// armOperand writes a value within an expression of ARM.
func armOperand(v any) string {
	switch v := v.(type) {
	case nil:
		return "null()"
	case expr:
		return v.arm()
	case string:
		return quote(v)
	case bool:
		return strconv.FormatBool(v) + "()"
	case int:
		return strconv.Itoa(v)
	case object:
		var args []string
		for _, m := range v {
			args = append(args, quote(m.name), armOperand(m.value))
		}
		return "createObject(" + strings.Join(args, ", ") + ")"
	case array:
		args := make([]string, len(v))
		for i, x := range v {
			args[i] = armOperand(x)
		}
		return "createArray(" + strings.Join(args, ", ") + ")"
	default:
		panic(fmt.Sprintf("azuretemplate: a value of type %T", v))
	}
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func isEmpty(v expr) expr    { return call{"empty", []any{v}} }
func equals(a, b any) expr   { return operation{"equals", "==", a, b} }
func and(a, b any) expr      { return operation{"and", "&&", a, b} }
func concat(v ...any) expr   { return call{"concat", v} }
func unique() expr           { return call{"uniqueString", []any{groupID()}} }
func groupID() expr          { return property{call{"resourceGroup", nil}, "id"} }
func groupLocation() expr    { return property{call{"resourceGroup", nil}, "location"} }
func guid(parts ...any) expr { return call{"guid", parts} }
