package armtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Resource is a resource that the deployment of a template would create.
type Resource struct {
	Type, APIVersion, Name string
	ID                     string         // id within the resource group
	Scope                  string         // id of the resource to which an extension applies; "" for other resources
	Body                   map[string]any // evaluated values of the other members, such as location and properties
	dependsOn              []string
}

// A Deployment contains the resources that a template would create, and its
// outputs.
type Deployment struct {
	Resources []Resource // include the resources of nested templates
	Outputs   map[string]any
}

// Options provide the values and resources that a template uses but does not
// declare.
type Options struct {
	// Runtime returns a property that Azure sets only when it creates the
	// resource.
	Runtime func(r *Resource, path string) string

	// Existing lists the types of resources that the template uses as parents
	// without creating them.
	Existing []string
}

// A templateDocument is a template decoded from JSON.
type templateDocument struct {
	Schema         string               `json:"$schema"`
	ContentVersion string               `json:"contentVersion"`
	Metadata       map[string]string    `json:"metadata"`
	Parameters     map[string]parameter `json:"parameters"`
	Resources      []map[string]any     `json:"resources"`
	Outputs        map[string]struct {
		Type  string `json:"type"`
		Value any    `json:"value"`
	} `json:"outputs"`
}

type parameter struct {
	Type          string            `json:"type"`
	DefaultValue  any               `json:"defaultValue"`
	AllowedValues []any             `json:"allowedValues"`
	Metadata      map[string]string `json:"metadata"`
}

// Evaluate deploys a template with these parameters, and returns the result.
func Evaluate(text []byte, parameters map[string]any, o Options) (*Deployment, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var t templateDocument
	if err := d.Decode(&t); err != nil {
		return nil, fmt.Errorf("read the template: %w", err)
	}
	return evaluateTemplate(&t, parameters, &o)
}

// An evaluation is the state of the evaluation of one template. A nested
// template has its own evaluation.
type evaluation struct {
	document   *templateDocument
	options    *Options
	parameters map[string]any
	used       map[string]bool
	declared   map[string]*Resource // resources by id, including resources that the template does not create
	made       map[string]bool
	nested     map[string]*Deployment
	named      []string // ids of the resources that the current value refers to
}

func evaluateTemplate(t *templateDocument, given map[string]any, o *Options) (*Deployment, error) {
	if t.Schema == "" || t.ContentVersion == "" {
		return nil, errors.New("the template has no schema or no version")
	}
	e := &evaluation{
		document: t, options: o, parameters: make(map[string]any), used: make(map[string]bool),
		declared: make(map[string]*Resource), made: make(map[string]bool), nested: make(map[string]*Deployment),
	}
	if err := e.setParameters(given); err != nil {
		return nil, err
	}
	all := &Deployment{Outputs: make(map[string]any)}
	pending := make([]*Resource, len(t.Resources))
	for i, raw := range t.Resources { // all names are declared first, because a resource may refer to a later one
		r, err := e.declareResource(raw)
		if err != nil {
			return nil, err
		}
		pending[i] = r
	}
	for i, raw := range t.Resources {
		if err := e.evaluateResource(raw, pending[i], all); err != nil {
			return nil, fmt.Errorf("%s: %w", pending[i].ID, err)
		}
	}
	if err := e.checkOrder(pending); err != nil {
		return nil, err
	}
	for name, out := range t.Outputs {
		value, err := e.evaluateValue(out.Value)
		if err == nil {
			err = checkType(out.Type, value)
		}
		if err != nil {
			return nil, fmt.Errorf("output %s: %w", name, err)
		}
		all.Outputs[name] = value
	}
	for name, p := range t.Parameters {
		if !e.used[name] {
			return nil, fmt.Errorf("parameter %s is not used", name)
		}
		if p.Metadata["description"] == "" {
			return nil, fmt.Errorf("parameter %s has no description", name)
		}
	}
	return all, nil
}

func (e *evaluation) setParameters(given map[string]any) error {
	for name := range given {
		if _, exists := e.document.Parameters[name]; !exists {
			return fmt.Errorf("no parameter %s", name)
		}
	}
	for name, value := range given {
		e.parameters[name] = value
	}
	for name, p := range e.document.Parameters {
		value, err := e.parameterValue(name)
		if err != nil {
			return err
		}
		if err := checkType(p.Type, value); err != nil {
			return fmt.Errorf("parameter %s: %w", name, err)
		}
		if p.AllowedValues != nil && !slices.Contains(p.AllowedValues, value) {
			return fmt.Errorf("parameter %s: %v is not allowed", name, value)
		}
		e.used[name] = false
	}
	for _, p := range e.document.Parameters { // the default of a parameter may be the only use of another parameter
		if _, err := e.evaluateValue(p.DefaultValue); err != nil {
			return err
		}
	}
	return nil
}

// parameterValue returns the value of a parameter: the given value, or its
// default.
func (e *evaluation) parameterValue(name string) (any, error) {
	p, exists := e.document.Parameters[name]
	if !exists {
		return nil, fmt.Errorf("no parameter %s", name)
	}
	e.used[name] = true
	if value, isSet := e.parameters[name]; isSet {
		return value, nil
	}
	if p.DefaultValue == nil {
		return nil, fmt.Errorf("parameter %s is required", name)
	}
	value, err := e.evaluateValue(p.DefaultValue)
	e.parameters[name] = value
	return value, err
}

func checkType(kind string, value any) error {
	ok := false
	switch kind {
	case "string", "securestring":
		_, ok = value.(string)
	case "bool":
		_, ok = value.(bool)
	case "int":
		_, ok = value.(float64)
	case "array":
		_, ok = value.([]any)
	}
	if !ok {
		return fmt.Errorf("%v is no %s", value, kind)
	}
	return nil
}

// declareResource evaluates the type and the name of a resource, and adds the
// resource to declared.
func (e *evaluation) declareResource(raw map[string]any) (*Resource, error) {
	r := &Resource{Body: make(map[string]any)}
	for name, to := range map[string]*string{"type": &r.Type, "apiVersion": &r.APIVersion, "name": &r.Name} {
		value, err := e.evaluateValue(raw[name])
		if err != nil {
			return nil, fmt.Errorf("resource %v: %w", raw["name"], err)
		}
		text, ok := value.(string)
		if !ok || text == "" {
			return nil, fmt.Errorf("resource %v has no %s", raw["name"], name)
		}
		*to = text
	}
	if strings.Count(r.Type, "/") != strings.Count(r.Name, "/")+1 {
		return nil, fmt.Errorf("%s: the name %s has not as many parts as its type", r.Type, r.Name)
	}
	r.ID = makeID(r.Type, strings.Split(r.Name, "/"))
	if scope, hasScope := raw["scope"]; hasScope {
		value, err := e.evaluateValue(scope)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.ID, err)
		}
		r.Scope, _ = value.(string)
		r.ID = r.Scope + "/providers/" + r.ID
	}
	if e.declared[r.ID] != nil {
		return nil, fmt.Errorf("%s occurs twice", r.ID)
	}
	e.declared[r.ID] = r
	return r, nil
}

// makeID returns the id of a resource within its resource group.
func makeID(kind string, names []string) string {
	types := strings.Split(kind, "/")
	parts := []string{types[0]}
	for i, t := range types[1:] {
		parts = append(parts, t, names[i])
	}
	return strings.Join(parts, "/")
}

// evaluateResource evaluates a resource, and adds it to the deployment if its condition is true.
func (e *evaluation) evaluateResource(raw map[string]any, r *Resource, all *Deployment) error {
	e.named = nil
	for name, v := range raw {
		if slices.Contains([]string{"type", "apiVersion", "dependsOn"}, name) {
			continue
		}
		if name == "properties" && r.Type == deployments {
			continue // evaluated below, if the resource is deployed
		}
		value, err := e.evaluateValue(v)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		r.Body[name] = value
	}
	condition, hasCondition := r.Body["condition"]
	e.made[r.ID] = !hasCondition || condition == true
	delete(r.Body, "condition")
	delete(r.Body, "name")
	delete(r.Body, "scope")
	if r.Type == deployments {
		if err := e.evaluateNested(raw, r, all); err != nil {
			return err
		}
	} else if e.made[r.ID] {
		all.Resources = append(all.Resources, *r)
	}
	needs := slices.Clone(e.named)
	if parent := parentOf(r); parent != "" && !e.isExisting(r.Type) {
		if e.declared[parent] == nil {
			return fmt.Errorf("no resource %s", parent)
		}
		needs = append(needs, parent)
	}
	list, _ := raw["dependsOn"].([]any)
	for _, v := range list {
		value, err := e.evaluateValue(v)
		if err != nil {
			return fmt.Errorf("dependsOn: %w", err)
		}
		r.dependsOn = append(r.dependsOn, value.(string))
	}
	for _, n := range needs {
		if n != r.ID && !slices.Contains(r.dependsOn, n) {
			return fmt.Errorf("it uses %s, and does not depend on it", n)
		}
	}
	return nil
}

func (e *evaluation) isExisting(kind string) bool {
	return slices.ContainsFunc(e.options.Existing, func(parent string) bool { return strings.HasPrefix(kind, parent+"/") })
}

// parentOf returns the id of the parent of r, or "".
func parentOf(r *Resource) string {
	if r.Scope != "" || strings.Count(r.Type, "/") < 2 {
		return ""
	}
	names := strings.Split(r.Name, "/")
	return makeID(r.Type[:strings.LastIndexByte(r.Type, '/')], names[:len(names)-1])
}

// deployments is the resource type of a nested template.
const deployments = "Microsoft.Resources/deployments"

// evaluateNested evaluates the template in a resource of type deployments.
func (e *evaluation) evaluateNested(raw map[string]any, r *Resource, all *Deployment) error {
	properties, _ := raw["properties"].(map[string]any)
	given := make(map[string]any)
	arguments, _ := properties["parameters"].(map[string]any)
	for name, a := range arguments {
		value, err := e.evaluateValue(a.(map[string]any)["value"])
		if err != nil {
			return fmt.Errorf("parameter %s: %w", name, err)
		}
		given[name] = value
	}
	text, err := json.Marshal(properties["template"])
	if err != nil {
		return err
	}
	var t templateDocument
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return err
	}
	inner, err := evaluateTemplate(&t, given, e.options)
	if err != nil {
		return err
	}
	e.nested[r.ID] = inner
	if e.made[r.ID] {
		all.Resources = append(all.Resources, inner.Resources...)
	}
	return nil
}

// checkOrder fails if the dependencies of resources contain a cycle, or name a
// resource that is not declared.
func (e *evaluation) checkOrder(all []*Resource) error {
	done := make(map[string]bool)
	left := make(map[string]*Resource)
	for _, r := range all {
		left[r.ID] = r
		for _, n := range r.dependsOn {
			if e.declared[n] == nil {
				return fmt.Errorf("%s depends on %s, which is not there", r.ID, n)
			}
		}
	}
	for len(left) > 0 {
		before := len(left)
		for _, id := range slices.Collect(maps.Keys(left)) {
			if !slices.ContainsFunc(left[id].dependsOn, func(n string) bool { return !done[n] }) {
				done[id] = true
				delete(left, id)
			}
		}
		if len(left) == before {
			return fmt.Errorf("resources depend on each other: %v", slices.Sorted(maps.Keys(left)))
		}
	}
	return nil
}
