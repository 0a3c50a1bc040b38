// Package subscriptionfile reads the subscriptions of an actor from a YAML file, and plans the
// changes after which a hub has these subscriptions.
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
// The file has the members of the HTTP API, and paused. Secrets are in other files or in variables,
// which hmac_secret_key_file, hmac_secret_key_env, headers_file and headers_env name; the last two
// are maps from the name of a header to a file or a variable. A file is validated as a whole: one
// fault means that nothing is changed.
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

// A File is the content of a parsed YAML file.
type File struct {
	Actor         domain.ActorID // zero if the file does not name an actor
	Subscriptions []Entry
}

// An Entry describes one subscription in a File.
type Entry struct {
	ID     domain.SubscriptionID
	Draft  domain.Subscription // without an owner
	Secret *string             // new secret; nil retains the stored secret, and "" removes it
	Paused *bool               // new state; nil retains the stored state
	// Headers contains the headers of calls. If it is nil, the stored headers
	// remain; if it is empty, they are removed.
	Headers map[string]string

	line int
}

// A Source returns secrets and header values, which a subscription file refers
// to but does not contain.
type Source struct {
	File     func(name string) (string, error)
	Variable func(name string) string
	NewID    func() (domain.SubscriptionID, error) // returns a new id; the error about an entry without an id proposes it
}

// MaxSize is the maximum size of a file, in bytes.
const MaxSize = 4 << 20

// maxFaults is the maximum number of faults in an error.
const maxFaults = 20

// Parse reads a file. Its error contains a line for each fault, with the line
// number of the fault.
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
	p := subscriptionParser{name: name, source: source, file: new(File)}
	p.readDocument(document.Content[0])
	if len(p.faults) > 0 {
		return nil, errors.Join(p.faults[:min(len(p.faults), maxFaults)]...)
	}
	return p.file, nil
}

// A subscriptionParser parses a file, and collects its faults.
type subscriptionParser struct {
	name   string
	source Source
	file   *File
	faults []error
}

func (p *subscriptionParser) addFault(at *yaml.Node, format string, args ...any) {
	p.faults = append(p.faults, fmt.Errorf("%s line %d: %s", p.name, at.Line, fmt.Sprintf(format, args...)))
}

// readMembers passes the value of each member of a mapping to the function for
// this member. known maps names of members to these functions. readMembers adds
// a fault for each unknown or repeated member.
func (p *subscriptionParser) readMembers(where string, n *yaml.Node, known map[string]func(value *yaml.Node)) {
	n = resolveAlias(n)
	if n.Kind != yaml.MappingNode {
		p.addFault(n, "%s: want a mapping, name: value", where)
		return
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		set := known[key.Value]
		switch {
		case seen[key.Value]:
			p.addFault(key, "%s: it occurs twice", domain.Shorten(key.Value))
		case set == nil:
			p.addFault(key, "%q: unknown; known are %s", domain.Shorten(key.Value), strings.Join(sortedNames(known), ", "))
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

// resolveAlias returns the node that an alias refers to.
func resolveAlias(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// readText returns a function that stores the text of a scalar node in into.
func (p *subscriptionParser) readText(name string, into *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		value := resolveAlias(n)
		if value.Kind != yaml.ScalarNode || value.Tag == "!!null" {
			p.addFault(n, "%s: want a text", name)
			return
		}
		*into = value.Value
	}
}

func (p *subscriptionParser) readDocument(n *yaml.Node) {
	hasList := false
	p.readMembers("the file", n, map[string]func(*yaml.Node){
		"actor": func(n *yaml.Node) {
			var text string
			p.readText("actor", &text)(n)
			actor, err := domain.ParseActorID(text)
			if err != nil {
				p.addFault(n, "actor: %v", err)
			}
			p.file.Actor = actor
		},
		"subscriptions": func(n *yaml.Node) {
			hasList = true
			list := resolveAlias(n)
			if list.Kind != yaml.SequenceNode {
				p.addFault(n, "subscriptions: want a list, each entry with a - before it")
				return
			}
			for _, entry := range list.Content {
				p.readEntry(entry)
			}
		},
	})
	if !hasList && len(p.faults) == 0 {
		p.addFault(n, "subscriptions: missing")
	}
	p.checkRepeatedIDs()
}

func (p *subscriptionParser) readEntry(n *yaml.Node) {
	e := Entry{line: n.Line}
	id, faults := "", len(p.faults)
	var secrets []string
	secret := func(name string, read func(text string) (string, error)) func(*yaml.Node) {
		return func(n *yaml.Node) {
			var text string
			p.readText(name, &text)(n)
			secrets = append(secrets, name)
			value, err := read(text)
			if err != nil {
				p.addFault(n, "%s: %v", name, err)
			}
			e.Secret = &value
		}
	}
	headers := func(name string, read func(text string) (string, error)) func(*yaml.Node) {
		return func(n *yaml.Node) { p.addHeaders(name, n, read, &e) }
	}
	text := func(text string) (string, error) { return text, nil }
	d := &e.Draft
	p.readMembers("an entry of subscriptions", n, map[string]func(*yaml.Node){
		"uuid": p.readText("uuid", &id), "topic": p.readText("topic", &d.Topic), "callback_url": p.readText("callback_url", &d.CallbackURL),
		"method": p.readText("method", &d.Method), "encoding": p.readText("encoding", &d.Encoding), "jmespath_query": p.readText("jmespath_query", &d.Filter),
		"payload_form_field": p.readText("payload_form_field", &d.PayloadFormField), "hmac_key_id": p.readText("hmac_key_id", &d.HMACKeyID),
		"form_fields":          func(n *yaml.Node) { d.FormFields = p.readTexts("form_fields", n) },
		"attachments":          func(n *yaml.Node) { d.Attachments = p.readAttachments(n) },
		"hmac_secret_key":      secret("hmac_secret_key", text),
		"hmac_secret_key_file": secret("hmac_secret_key_file", p.source.File),
		"hmac_secret_key_env":  secret("hmac_secret_key_env", p.readVariable),
		"headers":              headers("headers", text),
		"headers_file":         headers("headers_file", p.source.File),
		"headers_env":          headers("headers_env", p.readVariable),
		"delivery": func(n *yaml.Node) {
			mode := resolveAlias(n).Value
			if d.IsSync = mode == syncDelivery; !d.IsSync && mode != asyncDelivery {
				p.addFault(n, "delivery: want %s or %s", asyncDelivery, syncDelivery)
			}
		},
		"max_rate": func(n *yaml.Node) {
			if n.Decode(&d.MaxRate) != nil || d.MaxRate <= 0 {
				p.addFault(n, "max_rate: want %v to %v calls per second", domain.MinCallRate, domain.MaxCallRate)
			}
		},
		"max_concurrency": func(n *yaml.Node) {
			if n.Decode(&d.MaxConcurrency) != nil || d.MaxConcurrency < 1 {
				p.addFault(n, "max_concurrency: want 1 to %d calls at the same time", domain.MaxConcurrency)
			}
		},
		"ordered": func(n *yaml.Node) {
			if err := n.Decode(&d.IsOrdered); err != nil {
				p.addFault(n, "ordered: want true or false")
			}
		},
		"paused": func(n *yaml.Node) {
			var is bool
			if err := n.Decode(&is); err != nil {
				p.addFault(n, "paused: want true or false")
			}
			e.Paused = &is
		},
	})
	if len(secrets) > 1 {
		p.addFault(n, "want one of %s", strings.Join(secrets, " and "))
	}
	if len(p.faults) > faults {
		return
	}
	p.checkEntry(n, id, &e)
}

// Delivery modes of a subscription.
const (
	asyncDelivery = "async"
	syncDelivery  = "sync"
)

// readVariable returns the value of an environment variable.
func (p *subscriptionParser) readVariable(name string) (string, error) {
	if value := p.source.Variable(name); value != "" {
		return value, nil
	}
	return "", fmt.Errorf("the variable %s is not set", domain.Shorten(name))
}

// addHeaders adds headers to an entry. read converts a text of the file to a
// header value.
func (p *subscriptionParser) addHeaders(where string, n *yaml.Node, read func(text string) (string, error), e *Entry) {
	texts := p.readTexts(where, n)
	if e.Headers == nil {
		e.Headers = make(map[string]string)
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if _, twice := e.Headers[name]; twice {
			p.addFault(n, "%s: %s occurs twice", where, domain.Shorten(name))
		}
		value, err := read(texts[name])
		if err != nil {
			p.addFault(n, "%s %s: %v", where, domain.Shorten(name), err)
		}
		e.Headers[name] = value
	}
}

func (p *subscriptionParser) checkEntry(n *yaml.Node, id string, e *Entry) {
	var err error
	if id == "" {
		p.addFault(n, "uuid: missing; choose one that no other subscription has%s", p.exampleID())
	} else if e.ID, err = domain.ParseSubscriptionID(id); err != nil {
		p.addFault(n, "uuid: %v", err)
	}
	if e.Draft.CallbackURL == "" {
		p.addFault(n, "callback_url: missing")
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
		p.addFault(n, "%s", strings.TrimPrefix(err.Error(), "/"))
	}
	p.file.Subscriptions = append(p.file.Subscriptions, *e)
}

// exampleID returns a text that proposes a new id, for the error about a
// missing id.
func (p *subscriptionParser) exampleID() string {
	id, err := p.source.NewID()
	if err != nil {
		return ""
	}
	return ", such as " + id.String()
}

// readTexts reads a mapping from names to texts.
func (p *subscriptionParser) readTexts(where string, n *yaml.Node) map[string]string {
	mapping := resolveAlias(n)
	if mapping.Kind != yaml.MappingNode {
		p.addFault(n, "%s: want a mapping, name: value", where)
		return nil
	}
	all := make(map[string]string)
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], ""
		p.readText(where+" "+domain.Shorten(key.Value), &value)(mapping.Content[i+1])
		if _, twice := all[key.Value]; twice {
			p.addFault(key, "%s: it occurs twice", domain.Shorten(key.Value))
		}
		all[key.Value] = value
	}
	return all
}

// readAttachments reads the attachments: a mapping from names to JMESPath
// expressions.
func (p *subscriptionParser) readAttachments(n *yaml.Node) map[string]string {
	mapping := resolveAlias(n)
	if mapping.Kind != yaml.MappingNode {
		p.addFault(n, "attachments: want a mapping, name: {type: jmespath, expression: …}")
		return nil
	}
	all := make(map[string]string)
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, kind, expression := mapping.Content[i], "", ""
		p.readMembers("attachment "+domain.Shorten(key.Value), mapping.Content[i+1], map[string]func(*yaml.Node){
			"type": p.readText("type", &kind), "expression": p.readText("expression", &expression),
		})
		if _, twice := all[key.Value]; twice {
			p.addFault(key, "%s: it occurs twice", domain.Shorten(key.Value))
		}
		if kind != "jmespath" {
			p.addFault(key, "attachment %s: want type: jmespath", domain.Shorten(key.Value))
		}
		all[key.Value] = expression
	}
	return all
}

// checkRepeatedIDs reports ids that occur in more than one entry.
func (p *subscriptionParser) checkRepeatedIDs() {
	lines := make(map[domain.SubscriptionID]int)
	for _, e := range p.file.Subscriptions {
		if line, twice := lines[e.ID]; twice {
			p.faults = append(p.faults, fmt.Errorf("%s line %d: uuid: %s is also in line %d", p.name, e.line, e.ID, line))
		}
		lines[e.ID] = e.line
	}
}
