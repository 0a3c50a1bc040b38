package azuretemplate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

const schema = "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#"

// armNotice is the first line of a generated ARM template. It says that the
// project cannot deploy the template, and which command checks it.
const armNotice = "Not deployed by the project, which has no Azure account. Check with: az deployment group validate --resource-group GROUP --template-file FILE."

// writeARM returns the template as ARM JSON. Its first line is armNotice.
func writeARM(t *template) []byte {
	var b bytes.Buffer
	document := t.armTemplate()
	fmt.Fprintf(&b, "{ \"metadata\": { \"comment\": %s },\n", jsonText(armNotice+" "+t.about))
	for i, m := range document {
		fmt.Fprintf(&b, "  %s: ", jsonText(m.name))
		writeJSON(&b, m.value, "  ")
		if i < len(document)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString("}\n")
	return b.Bytes()
}

// writeParameters returns an ARM parameter file with these values.
func writeParameters(values orderedObject) []byte {
	parameters := orderedObject{}
	for _, v := range values {
		parameters = append(parameters, member{v.name, orderedObject{{"value", v.value}}})
	}
	var b bytes.Buffer
	writeJSON(&b, orderedObject{
		{"$schema", "https://schema.management.azure.com/schemas/2019-04-01/deploymentParameters.json#"}, {"contentVersion", "1.0.0.0"}, {"parameters", parameters},
	}, "")
	b.WriteByte('\n')
	return b.Bytes()
}

// armTemplate returns the template as a JSON object of ARM.
func (t *template) armTemplate() orderedObject {
	params := orderedObject{}
	for _, p := range t.params {
		kind := p.kind
		members := orderedObject{{"type", kind}}
		if p.value != nil {
			members = append(members, member{"defaultValue", p.value})
		}
		if p.allowed != nil {
			members = append(members, member{"allowedValues", p.allowed})
		}
		params = append(params, member{p.name, append(members, member{"metadata", orderedObject{{"description", p.description}}})})
	}
	resources := array{}
	for _, r := range t.resources {
		if !r.exists {
			resources = append(resources, r.armResource())
		}
	}
	for _, m := range t.modules {
		resources = append(resources, m.armModule())
	}
	outputs := orderedObject{}
	for _, o := range t.outputs {
		outputs = append(outputs, member{o.name, orderedObject{{"type", o.kind}, {"value", o.value}}})
	}
	return orderedObject{{"$schema", schema}, {"contentVersion", "1.0.0.0"}, {"parameters", params}, {"resources", resources}, {"outputs", outputs}}
}

func (r *templateResource) armResource() orderedObject {
	var members orderedObject
	if r.condition != nil {
		members = append(members, member{"condition", r.condition})
	}
	segments := r.nameSegments()
	name := segments[0]
	if len(segments) > 1 {
		joined := text{segments[0]}
		for _, s := range segments[1:] {
			joined = append(joined, "/", s)
		}
		name = joined
	}
	members = append(members, member{"type", r.kind}, member{"apiVersion", r.api}, member{"name", name})
	if r.scope != nil {
		members = append(members, member{"scope", resourceID{r.scope}})
	}
	members = append(members, r.body...)
	var needs []string
	need := func(other *templateResource) {
		if other != nil && other != r && !other.exists {
			needs = append(needs, resourceID{other}.armText())
		}
	}
	need(r.parent)
	need(r.scope)
	visitExpressions(r.name, func(e expr) { need(resourceOf(e)) })
	visitExpressions(r.body, func(e expr) { need(resourceOf(e)) })
	return appendNeeds(members, needs)
}

func (m *module) armModule() orderedObject {
	members := orderedObject{}
	if m.condition != nil {
		members = append(members, member{"condition", m.condition})
	}
	arguments := orderedObject{}
	var needs []string
	for _, a := range m.arguments {
		arguments = append(arguments, member{a.name, orderedObject{{"value", a.value}}})
		visitExpressions(a.value, func(e expr) {
			if o, ok := e.(moduleOutput); ok {
				needs = append(needs, o.of.deploymentID())
			}
		})
	}
	members = append(members,
		member{"type", "Microsoft.Resources/deployments"}, member{"apiVersion", deploymentsAPI}, member{"name", m.symbol},
		member{"properties", orderedObject{
			{"mode", "Incremental"},
			{"expressionEvaluationOptions", orderedObject{{"scope", "inner"}}},
			{"parameters", arguments},
			{"template", m.template.armTemplate()},
		}})
	return appendNeeds(members, needs)
}

func appendNeeds(members orderedObject, needs []string) orderedObject {
	slices.Sort(needs)
	if needs = slices.Compact(needs); len(needs) == 0 {
		return members
	}
	list := array{}
	for _, n := range needs {
		list = append(list, raw(n))
	}
	return append(members, member{"dependsOn", list})
}

// A raw is the text of an ARM expression. Bicep has no such expressions.
type raw string

func (r raw) armText() string       { return string(r) }
func (raw) bicepText(string) string { panic("azuretemplate: an expression of ARM alone") }

// resourceOf returns the resource to which an expression refers, or nil.
func resourceOf(e expr) *templateResource {
	switch e := e.(type) {
	case resourceID:
		return e.of
	case runtime:
		return e.of
	default:
		return nil
	}
}

// visitExpressions calls f for every expression in a value.
func visitExpressions(v any, f func(expr)) {
	if e, ok := v.(expr); ok {
		f(e)
	}
	switch v := v.(type) {
	case orderedObject:
		for _, m := range v {
			visitExpressions(m.value, f)
		}
	case array:
		visitAll(v, f)
	case functionCall:
		visitAll(v.args, f)
	case propertyAccess:
		visitExpressions(v.of, f)
	case binaryOperation:
		visitAll([]any{v.left, v.right}, f)
	case negation:
		visitExpressions(v.of, f)
	case conditional:
		visitAll([]any{v.condition, v.yes, v.no}, f)
	case text:
		visitAll(v, f)
	case singleMember:
		visitExpressions(v.name, f)
	}
}

func visitAll(all []any, f func(expr)) {
	for _, v := range all {
		visitExpressions(v, f)
	}
}

// writeJSON writes a value as JSON, and a short value on one line.
func writeJSON(b *bytes.Buffer, v any, indent string) {
	inner := indent + "  "
	switch v := v.(type) {
	case expr:
		b.WriteString(jsonText("[" + v.armText() + "]"))
	case orderedObject:
		if len(v) == 0 {
			b.WriteString("{}")
			return
		}
		b.WriteString("{\n")
		for i, m := range v {
			b.WriteString(inner + jsonText(m.name) + ": ")
			writeJSON(b, m.value, inner)
			endItem(b, i == len(v)-1)
		}
		b.WriteString(indent + "}")
	case array:
		if len(v) == 0 {
			b.WriteString("[]")
			return
		}
		b.WriteString("[\n")
		for i, x := range v {
			b.WriteString(inner)
			writeJSON(b, x, inner)
			endItem(b, i == len(v)-1)
		}
		b.WriteString(indent + "]")
	case string:
		if strings.HasPrefix(v, "[") {
			v = "[" + v // escaped, because Azure evaluates a text in brackets as an expression
		}
		b.WriteString(jsonText(v))
	default:
		b.WriteString(jsonText(v))
	}
}

func endItem(b *bytes.Buffer, isLast bool) {
	if !isLast {
		b.WriteByte(',')
	}
	b.WriteByte('\n')
}

func jsonText(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // strings, numbers and booleans can always be encoded
	}
	return strings.TrimSuffix(b.String(), "\n")
}
