package atom

import (
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/bus"
)

func (h *Handler) serveRule(r *http.Request, host, subscription, name string) (int, any, error) {
	switch r.Method {
	case http.MethodGet:
		rule, err := h.findRule(subscription, name)
		return http.StatusOK, ruleEntry(host+subscription, rule), err
	case http.MethodPut:
		return h.putRule(r, host, subscription, name)
	case http.MethodDelete:
		return http.StatusOK, nil, awaitResult(r, func(done func(error)) { h.Bus.DeleteRule(subscription, name, done) })
	}
	return 0, nil, newStatusError(http.StatusMethodNotAllowed, "%s: want GET, PUT or DELETE", r.Method)
}

func (h *Handler) findRule(subscription, name string) (bus.Rule, error) {
	rules, err := h.Bus.Rules(subscription)
	if err != nil {
		return bus.Rule{}, err
	}
	for _, rule := range rules {
		if strings.EqualFold(rule.Name, name) {
			return rule, nil
		}
	}
	return bus.Rule{}, newStatusError(http.StatusNotFound, "SubCode=40400. the rule '%s' could not be found", name)
}

func (h *Handler) putRule(r *http.Request, host, subscription, name string) (int, any, error) {
	d, err := readDescription(r)
	if err != nil {
		return 0, nil, err
	}
	rule, err := readRule(name, d.Filter, d.Action)
	if err != nil {
		return 0, nil, err
	}
	status := http.StatusCreated
	if r.Header.Get("If-Match") != "" {
		status = http.StatusOK
		if err := awaitResult(r, func(done func(error)) { h.Bus.DeleteRule(subscription, name, done) }); err != nil {
			return 0, nil, err
		}
	}
	if err := awaitResult(r, func(done func(error)) { h.Bus.AddRule(subscription, rule, done) }); err != nil {
		return 0, nil, err
	}
	return status, ruleEntry(host+subscription, rule), nil
}

func (h *Handler) replaceDefaultRule(r *http.Request, subscription string, d *ruleDescription) error {
	name := d.Name
	if name == "" {
		name = bus.DefaultRule
	}
	rule, err := readRule(name, d.Filter, d.Action)
	if err != nil {
		return err
	}
	if err := awaitResult(r, func(done func(error)) { h.Bus.DeleteRule(subscription, bus.DefaultRule, done) }); err != nil {
		return err
	}
	return awaitResult(r, func(done func(error)) { h.Bus.AddRule(subscription, rule, done) })
}

func (h *Handler) listRules(host, subscription string, p pageRange) (atomFeed, error) {
	rules, err := h.Bus.Rules(subscription)
	f := atomFeed{Title: "Rules", Updated: formatTime(h.Clock.Now())}
	for _, rule := range itemsOn(p, rules) {
		f.Entries = append(f.Entries, ruleEntry(host+subscription, rule))
	}
	return f, err
}

func readRule(name string, f *filterDescription, a *actionDescription) (bus.Rule, error) {
	rule := bus.Rule{Name: name}
	var err error
	if a != nil && a.Type == "SqlRuleAction" {
		rule.Action = a.SQLExpression
		if rule.Filter.Parameters, err = a.Parameters.readValues(); err != nil {
			return rule, err
		}
	}
	if f == nil {
		return rule, nil
	}
	switch f.Type {
	case "TrueFilter":
	case "FalseFilter":
		rule.Filter.False = true
	case "SqlFilter":
		if f.SQLExpression == nil {
			return rule, newStatusError(http.StatusBadRequest, "SubCode=40000. the filter has no SqlExpression")
		}
		rule.Filter.SQL = *f.SQLExpression
		var parameters map[string]any // the filter and the action share the parameters
		if parameters, err = f.Parameters.readValues(); len(parameters) > 0 && rule.Filter.Parameters != nil {
			maps.Copy(rule.Filter.Parameters, parameters)
		} else if len(parameters) > 0 {
			rule.Filter.Parameters = parameters
		}
	case "CorrelationFilter":
		c := &bus.Correlation{
			CorrelationID: f.CorrelationID, MessageID: f.MessageID, To: f.To, ReplyTo: f.ReplyTo, Subject: f.Label,
			SessionID: f.SessionID, ReplyToSessionID: f.ReplyToSessionID, ContentType: f.ContentType,
		}
		c.Properties, err = f.Properties.readValues()
		rule.Filter.Correlation = c
	default:
		err = newStatusError(http.StatusBadRequest, "SubCode=40000. a filter of type %q: want TrueFilter, FalseFilter, SqlFilter or CorrelationFilter", f.Type)
	}
	return rule, err
}

// ruleEntry returns the Atom entry of a rule. The URL of the subscription is url.
func ruleEntry(url string, rule bus.Rule) atomEntry {
	f := &filterDescription{}
	always, never := "1=1", "1=0"
	switch c := rule.Filter.Correlation; {
	case c != nil:
		f = &filterDescription{
			Type: "CorrelationFilter", CorrelationID: c.CorrelationID, MessageID: c.MessageID, To: c.To, ReplyTo: c.ReplyTo, Label: c.Subject,
			SessionID: c.SessionID, ReplyToSessionID: c.ReplyToSessionID, ContentType: c.ContentType, Properties: writeValues(c.Properties),
		}
	case rule.Filter.SQL != "":
		f.Type, f.SQLExpression, f.Parameters = "SqlFilter", &rule.Filter.SQL, writeValues(usedParameters(rule.Filter.SQL, rule.Filter.Parameters))
	case rule.Filter.False:
		f.Type, f.SQLExpression = "FalseFilter", &never
	default:
		f.Type, f.SQLExpression = "TrueFilter", &always
	}
	a := &actionDescription{Type: "EmptyRuleAction"}
	if rule.Action != "" {
		a = &actionDescription{Type: "SqlRuleAction", SQLExpression: rule.Action, Parameters: writeValues(usedParameters(rule.Action, rule.Filter.Parameters))}
	}
	return atomEntry{ID: url + "/Rules/" + rule.Name, Title: rule.Name, Content: entryContent{Type: "application/xml", Description: &description{
		XMLName: xml.Name{Space: busSpace, Local: "RuleDescription"}, Instance: instanceSpace, Filter: f, Action: a, Name: &rule.Name,
	}}}
}

// usedParameters returns the parameters that an expression uses.
func usedParameters(expression string, parameters map[string]any) map[string]any {
	used := map[string]any{}
	for name, value := range parameters {
		if strings.Contains(expression, name) {
			used[name] = value
		}
	}
	return used
}

// readValues decodes values whose types filters support.
func (p *properties) readValues() (map[string]any, error) {
	if p == nil || len(p.List) == 0 {
		return nil, nil
	}
	values := map[string]any{}
	for _, kv := range p.List {
		_, kind, prefixed := strings.Cut(string(kv.Value.Type), ":")
		if !prefixed {
			kind = string(kv.Value.Type)
		}
		var v any
		var err error
		switch kind {
		case "string", "guid":
			v = kv.Value.Text
		case "int", "long", "short":
			v, err = strconv.ParseInt(kv.Value.Text, 10, 64)
		case "double", "decimal", "float":
			v, err = strconv.ParseFloat(kv.Value.Text, 64)
		case "boolean":
			v, err = strconv.ParseBool(kv.Value.Text)
		case "dateTime":
			v, err = time.Parse(time.RFC3339Nano, kv.Value.Text)
		default:
			err = fmt.Errorf("its type is %s", kv.Value.Type)
		}
		if err != nil {
			return nil, newStatusError(http.StatusBadRequest, "SubCode=40000. the property %s: %v", kv.Key, err)
		}
		values[kv.Key] = v
	}
	return values, nil
}

// writeValues encodes values with their types. The namespace prefix of a type has four characters, because some clients
// depend on this length.
func writeValues(values map[string]any) *properties {
	if len(values) == 0 {
		return nil
	}
	p := &properties{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		v := typedValue{Space: schemaSpace, Type: "d6p1:string"}
		switch x := values[name].(type) {
		case bool:
			v.Type, v.Text = "d6p1:boolean", strconv.FormatBool(x)
		case int64:
			v.Type, v.Text = "d6p1:int", strconv.FormatInt(x, 10)
		case uint64:
			v.Type, v.Text = "d6p1:int", strconv.FormatUint(x, 10)
		case float64:
			v.Type, v.Text = "d6p1:double", strconv.FormatFloat(x, 'g', -1, 64)
		case time.Time:
			v.Type, v.Text = "d6p1:dateTime", x.UTC().Format(time.RFC3339Nano)
		default:
			v.Text = fmt.Sprint(x)
		}
		p.List = append(p.List, propertyEntry{name, v})
	}
	return p
}
