package azuretemplate

// An orderedObject is a JSON object whose members are written in this order.
type orderedObject []member

type member struct {
	name  string
	value any // a string, int, bool, nil, object, array or expr
}

type array []any

// A template describes the resources of one resource group. It can be written
// in ARM or in Bicep.
type template struct {
	about     string // purpose of the template
	params    []*param
	resources []*templateResource
	modules   []*module
	outputs   []output
}

// A param is a parameter of a template.
type param struct {
	name, kind  string // kind is string, securestring, int, bool or array
	description string
	value       any // default value; if nil, the parameter is required
	allowed     array
}

// A templateResource is a resource that the template creates, or an existing
// resource to which the template refers.
type templateResource struct {
	comment   string
	symbol    string // symbolic name in the template
	kind, api string // type and API version, such as Microsoft.Storage/storageAccounts and 2023-05-01
	parent    *templateResource
	scope     *templateResource // resource that an extension resource, such as a role assignment, applies to
	name      any               // string or expr; only the last segment of the name if the resource has a parent
	exists    bool
	condition expr // condition is nil if the resource is always created
	body      orderedObject
}

// A module is a template in a separate file.
type module struct {
	symbol, file string
	template     *template
	condition    expr
	arguments    orderedObject
}

type output struct {
	name, kind string
	value      any
}

func (t *template) addResource(r *templateResource) *templateResource {
	t.resources = append(t.resources, r)
	return r
}

// addParam adds a parameter, and returns a reference to it.
func (t *template) addParam(p param) expr {
	t.params = append(t.params, &p)
	return paramRef(p.name)
}

// nameSegments returns the names of the parents of r, followed by the name of r.
func (r *templateResource) nameSegments() []any {
	if r.parent == nil {
		return []any{r.name}
	}
	return append(r.parent.nameSegments(), r.name)
}
