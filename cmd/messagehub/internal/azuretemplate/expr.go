package azuretemplate

import (
	"fmt"
	"strconv"
	"strings"
)

// An expr is an expression of a template, which can be written in ARM and in
// Bicep.
type expr interface {
	armText() string
	bicepText(indent string) string
}

type (
	paramRef     string
	functionCall struct {
		function string
		args     []any
	}
	propertyAccess struct { // accesses a property of a value
		of   expr
		name string
	}
	binaryOperation struct { // applies an operator to two values; ARM writes it as a function
		function, operator string
		left, right        any
	}
	negation    struct{ of expr }
	conditional struct{ condition, yes, no any }
	text        []any // concatenates strings and expressions
	resourceID  struct{ of *templateResource }
	runtime     struct { // is a property that Azure sets only when it creates the resource
		of   *templateResource
		path string // path within the resource's member "properties"
	}
	moduleOutput struct {
		of   *module
		name string
	}
)

func (p paramRef) armText() string         { return "parameters('" + string(p) + "')" }
func (p paramRef) bicepText(string) string { return string(p) }

func (c functionCall) armText() string {
	args := make([]string, len(c.args))
	for i, a := range c.args {
		args[i] = armOperand(a)
	}
	return c.function + "(" + strings.Join(args, ", ") + ")"
}

func (c functionCall) bicepText(indent string) string {
	args := make([]string, len(c.args))
	for i, a := range c.args {
		args[i] = bicepValue(a, indent)
	}
	return c.function + "(" + strings.Join(args, ", ") + ")"
}

func (p propertyAccess) armText() string                { return p.of.armText() + "." + p.name }
func (p propertyAccess) bicepText(indent string) string { return p.of.bicepText(indent) + "." + p.name }

func (o binaryOperation) armText() string {
	return o.function + "(" + armOperand(o.left) + ", " + armOperand(o.right) + ")"
}

func (o binaryOperation) bicepText(indent string) string {
	return bicepValue(o.left, indent) + " " + o.operator + " " + bicepValue(o.right, indent)
}

func (n negation) armText() string                { return "not(" + n.of.armText() + ")" }
func (n negation) bicepText(indent string) string { return "!" + n.of.bicepText(indent) }

func (c conditional) armText() string {
	return "if(" + armOperand(c.condition) + ", " + armOperand(c.yes) + ", " + armOperand(c.no) + ")"
}

func (c conditional) bicepText(indent string) string {
	return bicepValue(c.condition, indent) + " ? " + bicepValue(c.yes, indent) + " : " + bicepValue(c.no, indent)
}

func (t text) armText() string {
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

func (t text) bicepText(indent string) string {
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

func (r resourceID) armText() string {
	args := []string{quote(r.of.kind)}
	for _, s := range r.of.nameSegments() {
		args = append(args, armOperand(s))
	}
	return "resourceId(" + strings.Join(args, ", ") + ")"
}

func (r resourceID) bicepText(string) string { return r.of.symbol + ".id" }

func (r runtime) armText() string {
	return "reference(" + resourceID{r.of}.armText() + ", " + quote(r.of.api) + ")." + r.path
}

func (r runtime) bicepText(string) string { return r.of.symbol + ".properties." + r.path }

func (m moduleOutput) armText() string {
	return "reference(" + m.of.deploymentID() + ", " + quote(deploymentsAPI) + ").outputs." + m.name + ".value"
}

func (m moduleOutput) bicepText(string) string { return m.of.symbol + ".outputs." + m.name }

// deploymentsAPI is the API version of nested deployments, which represent
// Bicep modules in ARM.
const deploymentsAPI = "2022-09-01"

func (m *module) deploymentID() string {
	return "resourceId('Microsoft.Resources/deployments', " + quote(m.symbol) + ")"
}

// armOperand returns a value in the syntax of an operand in an ARM expression.
func armOperand(v any) string {
	switch v := v.(type) {
	case nil:
		return "null()"
	case expr:
		return v.armText()
	case string:
		return quote(v)
	case bool:
		return strconv.FormatBool(v) + "()"
	case int:
		return strconv.Itoa(v)
	case orderedObject:
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

func isEmpty(v expr) expr    { return functionCall{"empty", []any{v}} }
func equals(a, b any) expr   { return binaryOperation{"equals", "==", a, b} }
func and(a, b any) expr      { return binaryOperation{"and", "&&", a, b} }
func concat(v ...any) expr   { return functionCall{"concat", v} }
func unique() expr           { return functionCall{"uniqueString", []any{groupID()}} }
func groupID() expr          { return propertyAccess{functionCall{"resourceGroup", nil}, "id"} }
func groupLocation() expr    { return propertyAccess{functionCall{"resourceGroup", nil}, "location"} }
func guid(parts ...any) expr { return functionCall{"guid", parts} }
