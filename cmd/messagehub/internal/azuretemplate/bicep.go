package azuretemplate

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// bicepNotice is the first line of a generated Bicep file. It says that no
// Bicep compiler has checked the file, and which commands check it.
const bicepNotice = "Not compiled by the project, which has no Bicep compiler. Check with: az bicep build --stdout --file FILE, and az deployment group validate."

// writeBicep returns the template in Bicep. Its first line is bicepNotice.
func writeBicep(t *template) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// %s\n// %s\n", bicepNotice, t.about)
	for _, p := range t.params {
		b.WriteByte('\n')
		p.writeBicep(&b)
	}
	for _, r := range t.resources {
		b.WriteByte('\n')
		r.writeBicep(&b)
	}
	for _, m := range t.modules {
		b.WriteByte('\n')
		m.writeBicep(&b)
	}
	for i, o := range t.outputs {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "output %s %s = %s\n", o.name, o.kind, bicepValue(o.value, ""))
	}
	return b.Bytes()
}

func (p *param) writeBicep(b *bytes.Buffer) {
	fmt.Fprintf(b, "@description(%s)\n", bicepValue(p.description, ""))
	if p.allowed != nil {
		fmt.Fprintf(b, "@allowed(%s)\n", bicepValue(p.allowed, ""))
	}
	kind := p.kind
	if kind == secret {
		b.WriteString("@secure()\n")
		kind = "string"
	}
	fmt.Fprintf(b, "param %s %s", p.name, kind)
	if p.value != nil {
		fmt.Fprintf(b, " = %s", bicepValue(p.value, ""))
	}
	b.WriteByte('\n')
}

// secret is the type of a parameter whose value Azure hides.
const secret = "securestring"

func (r *templateResource) writeBicep(b *bytes.Buffer) {
	if r.comment != "" {
		fmt.Fprintf(b, "// %s\n", r.comment)
	}
	fmt.Fprintf(b, "resource %s '%s@%s' ", r.symbol, r.kind, r.api)
	if r.exists {
		b.WriteString("existing ")
	}
	b.WriteString("= ")
	if r.condition != nil {
		fmt.Fprintf(b, "if (%s) ", r.condition.bicepText(""))
	}
	var members orderedObject
	if r.parent != nil {
		members = append(members, member{"parent", symbol(r.parent.symbol)})
	}
	if r.scope != nil {
		members = append(members, member{"scope", symbol(r.scope.symbol)})
	}
	members = append(append(members, member{"name", r.name}), r.body...)
	b.WriteString(bicepValue(members, "") + "\n")
}

func (m *module) writeBicep(b *bytes.Buffer) {
	fmt.Fprintf(b, "module %s '%s' = ", m.symbol, m.file)
	if m.condition != nil {
		fmt.Fprintf(b, "if (%s) ", m.condition.bicepText(""))
	}
	b.WriteString(bicepValue(orderedObject{{"name", m.symbol}, {"params", m.arguments}}, "") + "\n")
}

// A symbol is the symbolic name of a resource in Bicep.
type symbol string

func (s symbol) armText() string         { panic("azuretemplate: ARM has no symbols") }
func (s symbol) bicepText(string) string { return string(s) }

var bicepName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// bicepValue returns a value in Bicep; indent is the indentation of the line on
// which the value begins.
func bicepValue(v any, indent string) string {
	inner := indent + "  "
	switch v := v.(type) {
	case nil:
		return "null"
	case expr:
		return v.bicepText(indent)
	case string:
		return "'" + escapeBicep(v) + "'"
	case bool:
		return strconv.FormatBool(v)
	case int:
		return strconv.Itoa(v)
	case orderedObject:
		if len(v) == 0 {
			return "{}"
		}
		var b strings.Builder
		b.WriteString("{\n")
		for _, m := range v {
			name := m.name
			if !bicepName.MatchString(name) {
				name = "'" + escapeBicep(name) + "'"
			}
			b.WriteString(inner + name + ": " + bicepValue(m.value, inner) + "\n")
		}
		return b.String() + indent + "}"
	case array:
		if len(v) == 0 {
			return "[]"
		}
		var b strings.Builder
		b.WriteString("[\n")
		for _, x := range v {
			b.WriteString(inner + bicepValue(x, inner) + "\n")
		}
		return b.String() + indent + "]"
	default:
		panic(fmt.Sprintf("azuretemplate: a value of type %T", v))
	}
}

func escapeBicep(s string) string {
	return strings.NewReplacer(`\`, `\\`, "'", `\'`, "${", `\${`, "\n", `\n`).Replace(s)
}
