// Package subscriptionfile reads the subscriptions of an actor from a YAML file, and plans what
// a hub has to change so that it has them.
//
//	actor: 5790001330552
//	subscriptions:
//	  - uuid: 0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41
//	    callback_url: https://example.org/hook
//	    jmespath_query: type == 'made'
//	    attachments: {size: {type: jmespath, expression: data.size}}
//	    hmac_secret_key_file: hook.key
//	    paused: false
//
// The members are those of the HTTP API, and more: paused, and so that the file holds no secret,
// hmac_secret_key_file, hmac_secret_key_env, headers_file and headers_env, the last two with the
// names of files and variables by those of headers. A file is checked as a whole: nothing is done
// unless all of it is valid.
package subscriptionfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/messagehub/messagehub/api/webhook"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/filter"
)

// A File is what a YAML file says.
type File struct {
	Actor         domain.ActorID // the zero value: the file names none
	Subscriptions []Entry
}

// An Entry is a subscription in a File.
type Entry struct {
	ID     domain.SubscriptionID
	Draft  domain.Subscription // without an owner
	Secret *string             // nil: the one that is there is kept; "": it is removed
	Paused *bool               // nil: as it is
	// Headers are those of calls. Nil: those that are there are kept; empty: they are removed.
	Headers map[string]string

	line int
}

// A Source returns the text of an HMAC key or a header that a file names.
type Source struct {
	File     func(name string) (string, error)
	Variable func(name string) string
	NewID    func() (domain.SubscriptionID, error) // is proposed where an id is missing
}

// MaxSize is the limit of a file, in bytes.
const MaxSize = 4 << 20

// maxFaults is the limit of the faults that are reported.
const maxFaults = 20

// Parse reads a file. Its error has a line for each fault, with the line of the file.
func Parse(r io.Reader, name string, source Source) (*File, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(text) > MaxSize {
		return nil, fmt.Errorf("%s: want at most %d bytes", name, MaxSize)
	}
	var document, more yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: it is empty; want actor and subscriptions", name)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: want one document", name)
	}
	p := parser{name: name, source: source, file: new(File)}
	p.document(document.Content[0])
	if len(p.faults) > 0 {
		return nil, errors.Join(p.faults[:min(len(p.faults), maxFaults)]...)
	}
	return p.file, nil
}

// A parser gathers what is wrong with a file.
type parser struct {
	name   string
	source Source
	file   *File
	faults []error
}

func (p *parser) report(at *yaml.Node, format string, args ...any) {
	p.faults = append(p.faults, fmt.Errorf("%s line %d: %s", p.name, at.Line, fmt.Sprintf(format, args...)))
}

// members calls the function of each member of a mapping. It reports members that have none, or
// are there twice.
func (p *parser) members(where string, n *yaml.Node, known map[string]func(value *yaml.Node)) {
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		p.report(n, "%s: want a mapping, name: value", where)
		return
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		set := known[key.Value]
		switch {
		case seen[key.Value]:
			p.report(key, "%s: it is there twice", domain.Clip(key.Value))
		case set == nil:
			p.report(key, "%q: unknown; known are %s", domain.Clip(key.Value), strings.Join(sortedNames(known), ", "))
		default:
			set(value)
		}
		seen[key.Value] = true
	}
}

func sortedNames(known map[string]func(*yaml.Node)) []string {
	names := make([]string, 0, len(known))
	for name := range known {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// resolve returns the node that an alias refers to.
func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// text returns a function that reads a scalar into a string.
func (p *parser) text(name string, into *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		value := resolve(n)
		if value.Kind != yaml.ScalarNode || value.Tag == "!!null" {
			p.report(n, "%s: want a text", name)
			return
		}
		*into = value.Value
	}
}

func (p *parser) document(n *yaml.Node) {
	hasList := false
	p.members("the file", n, map[string]func(*yaml.Node){
		"actor": func(n *yaml.Node) {
			var text string
			p.text("actor", &text)(n)
			actor, err := domain.ParseActorID(text)
			if err != nil {
				p.report(n, "actor: %v", err)
			}
			p.file.Actor = actor
		},
		"subscriptions": func(n *yaml.Node) {
			hasList = true
			list := resolve(n)
			if list.Kind != yaml.SequenceNode {
				p.report(n, "subscriptions: want a list, each entry with a - before it")
				return
			}
			for _, entry := range list.Content {
				p.entry(entry)
			}
		},
	})
	if !hasList && len(p.faults) == 0 {
		p.report(n, "subscriptions: missing")
	}
	p.checkTwice()
}

func (p *parser) entry(n *yaml.Node) {
	e := Entry{line: n.Line}
	id, faults := "", len(p.faults)
	var secrets []string
	secret := func(name string, read func(text string) (string, error)) func(*yaml.Node) {
		return func(n *yaml.Node) {
			var text string
			p.text(name, &text)(n)
			secrets = append(secrets, name)
			value, err := read(text)
			if err != nil {
				p.report(n, "%s: %v", name, err)
			}
			e.Secret = &value
		}
	}
	headers := func(name string, read func(text string) (string, error)) func(*yaml.Node) {
		return func(n *yaml.Node) { p.headers(name, n, read, &e) }
	}
	text := func(text string) (string, error) { return text, nil }
	d := &e.Draft
	p.members("an entry of subscriptions", n, map[string]func(*yaml.Node){
		"uuid": p.text("uuid", &id), "topic": p.text("topic", &d.Topic), "callback_url": p.text("callback_url", &d.CallbackURL),
		"method": p.text("method", &d.Method), "encoding": p.text("encoding", &d.Encoding), "jmespath_query": p.text("jmespath_query", &d.Filter),
		"payload_form_field": p.text("payload_form_field", &d.PayloadFormField), "hmac_key_id": p.text("hmac_key_id", &d.HMACKeyID),
		"form_fields":          func(n *yaml.Node) { d.FormFields = p.texts("form_fields", n) },
		"attachments":          func(n *yaml.Node) { d.Attachments = p.attachments(n) },
		"hmac_secret_key":      secret("hmac_secret_key", text),
		"hmac_secret_key_file": secret("hmac_secret_key_file", p.source.File),
		"hmac_secret_key_env":  secret("hmac_secret_key_env", p.variable),
		"headers":              headers("headers", text),
		"headers_file":         headers("headers_file", p.source.File),
		"headers_env":          headers("headers_env", p.variable),
		"delivery": func(n *yaml.Node) {
			mode := resolve(n).Value
			if d.IsSync = mode == syncDelivery; !d.IsSync && mode != asyncDelivery {
				p.report(n, "delivery: want %s or %s", asyncDelivery, syncDelivery)
			}
		},
		"max_rate": func(n *yaml.Node) {
			if n.Decode(&d.MaxRate) != nil || d.MaxRate <= 0 {
				p.report(n, "max_rate: want %v to %v calls per second", domain.MinCallRate, domain.MaxCallRate)
			}
		},
		"max_concurrency": func(n *yaml.Node) {
			if n.Decode(&d.MaxConcurrency) != nil || d.MaxConcurrency < 1 {
				p.report(n, "max_concurrency: want 1 to %d calls at the same time", domain.MaxConcurrency)
			}
		},
		"ordered": func(n *yaml.Node) {
			if err := n.Decode(&d.IsOrdered); err != nil {
				p.report(n, "ordered: want true or false")
			}
		},
		"paused": func(n *yaml.Node) {
			var is bool
			if err := n.Decode(&is); err != nil {
				p.report(n, "paused: want true or false")
			}
			e.Paused = &is
		},
	})
	if len(secrets) > 1 {
		p.report(n, "want one of %s", strings.Join(secrets, " and "))
	}
	if len(p.faults) > faults {
		return
	}
	p.checkEntry(n, id, &e)
}

// The modes of delivery.
const (
	asyncDelivery = "async"
	syncDelivery  = "sync"
)

// variable returns the text of a variable of the environment.
func (p *parser) variable(name string) (string, error) {
	if value := p.source.Variable(name); value != "" {
		return value, nil
	}
	return "", fmt.Errorf("the variable %s is not set", domain.Clip(name))
}

// headers adds headers to an entry. read returns the value of what the file says of one.
func (p *parser) headers(where string, n *yaml.Node, read func(text string) (string, error), e *Entry) {
	texts := p.texts(where, n)
	if e.Headers == nil {
		e.Headers = make(map[string]string)
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if _, twice := e.Headers[name]; twice {
			p.report(n, "%s: %s is there twice", where, domain.Clip(name))
		}
		value, err := read(texts[name])
		if err != nil {
			p.report(n, "%s %s: %v", where, domain.Clip(name), err)
		}
		e.Headers[name] = value
	}
}

func (p *parser) checkEntry(n *yaml.Node, id string, e *Entry) {
	var err error
	if id == "" {
		p.report(n, "uuid: missing; choose one that no other subscription has%s", p.exampleID())
	} else if e.ID, err = domain.ParseSubscriptionID(id); err != nil {
		p.report(n, "uuid: %v", err)
	}
	if e.Draft.CallbackURL == "" {
		p.report(n, "callback_url: missing")
		return
	}
	e.Draft.SetDefaults()
	if err = e.Draft.Check(); err == nil {
		_, _, err = filter.CompileSubscription(&e.Draft)
	}
	if err == nil {
		err = webhook.CheckHeaders(e.Headers)
	}
	if err != nil {
		p.report(n, "%s", strings.TrimPrefix(err.Error(), "/"))
	}
	p.file.Subscriptions = append(p.file.Subscriptions, *e)
}

// exampleID returns an id that can be used, in words.
func (p *parser) exampleID() string {
	id, err := p.source.NewID()
	if err != nil {
		return ""
	}
	return ", such as " + id.String()
}

// texts reads a mapping of names to texts.
func (p *parser) texts(where string, n *yaml.Node) map[string]string {
	mapping := resolve(n)
	if mapping.Kind != yaml.MappingNode {
		p.report(n, "%s: want a mapping, name: value", where)
		return nil
	}
	all := make(map[string]string)
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], ""
		p.text(where+" "+domain.Clip(key.Value), &value)(mapping.Content[i+1])
		if _, twice := all[key.Value]; twice {
			p.report(key, "%s: it is there twice", domain.Clip(key.Value))
		}
		all[key.Value] = value
	}
	return all
}

// attachments reads expressions by their names.
func (p *parser) attachments(n *yaml.Node) map[string]string {
	mapping := resolve(n)
	if mapping.Kind != yaml.MappingNode {
		p.report(n, "attachments: want a mapping, name: {type: jmespath, expression: …}")
		return nil
	}
	all := make(map[string]string)
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, kind, expression := mapping.Content[i], "", ""
		p.members("attachment "+domain.Clip(key.Value), mapping.Content[i+1], map[string]func(*yaml.Node){
			"type": p.text("type", &kind), "expression": p.text("expression", &expression),
		})
		if _, twice := all[key.Value]; twice {
			p.report(key, "%s: it is there twice", domain.Clip(key.Value))
		}
		if kind != "jmespath" {
			p.report(key, "attachment %s: want type: jmespath", domain.Clip(key.Value))
		}
		all[key.Value] = expression
	}
	return all
}

// checkTwice reports ids that two entries have.
func (p *parser) checkTwice() {
	lines := make(map[domain.SubscriptionID]int)
	for _, e := range p.file.Subscriptions {
		if line, twice := lines[e.ID]; twice {
			p.faults = append(p.faults, fmt.Errorf("%s line %d: uuid: %s is that of line %d, too", p.name, e.line, e.ID, line))
		}
		lines[e.ID] = e.line
	}
}
