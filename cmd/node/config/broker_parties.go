package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/messagehub/messagehub/domain"
)

// A BrokerParty is a producer, channel or consumer that a node creates or
// updates when it starts.
type BrokerParty struct {
	ID          domain.PartyID
	Name        string // if "", an existing party retains its name, and a new party's name is its id
	CallbackURL string // callback URL of a consumer
	Token       TokenSource
}

// A TokenSource says where the token of a party is stored. The zero value means
// that the token does not change.
type TokenSource struct {
	File     string
	Variable string // name of an environment variable
	Value    Secret // value of the environment variable, or the token from the configuration itself
	what     string // key of the token, for errors; "" stands for "token"
}

func (s *TokenSource) name() string { return cmp.Or(s.what, "token") }

// maxTokenFile is the maximum size of a token file, in bytes.
const maxTokenFile = 4 << 10

// Read returns the token. ok is false if the source is the zero value. The
// error never contains the token.
func (s *TokenSource) Read() (token Secret, ok bool, err error) {
	switch {
	case s.File != "":
		token, err = readTokenFile(s.name(), s.File)
		return token, err == nil, err
	case s.Variable != "" && s.Value == "":
		return "", false, fmt.Errorf("%s-env: the variable %s is not set", s.name(), s.Variable)
	}
	return s.Value, s.Value != "", nil
}

// readTokenFile returns the text of a file, without surrounding white space.
// Errors name the token by what.
func readTokenFile(what, name string) (token Secret, err error) {
	f, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("%s-file: %w", what, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err := io.ReadAll(io.LimitReader(f, maxTokenFile+1))
	if err != nil {
		return "", fmt.Errorf("%s-file: read %s: %w", what, name, err)
	}
	trimmed := strings.TrimSpace(string(text))
	if trimmed == "" || len(text) > maxTokenFile {
		return "", fmt.Errorf("%s-file: want a %s alone in %s", what, what, name)
	}
	return Secret(trimmed), nil
}

// BrokerParties lists parties in file order.
type BrokerParties []BrokerParty

// readVariables reads the tokens that are stored in environment variables.
func (ps BrokerParties) readVariables(environ []string) {
	for i := range ps {
		if name := ps[i].Token.Variable; name != "" {
			ps[i].Token.Value = Secret(lookUpVariable(environ, name))
		}
	}
}

// lookUpVariable returns the value of an environment variable, or "" if it is
// not set.
func lookUpVariable(environ []string, name string) (found string) {
	for _, entry := range environ {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			found = value
		}
	}
	return found
}

// Parties returns all parties of the configuration. Channels precede consumers.
func (b *Broker) Parties() BrokerParties {
	return slices.Concat(b.Producers, b.Channels, b.Consumers)
}

// hasTokens reports whether the configuration itself contains a token.
func (b *Broker) hasTokens() bool {
	return slices.ContainsFunc(b.Parties(), func(p BrokerParty) bool { return p.Token.Value != "" && p.Token.Variable == "" })
}

// ReadBroker reads only the producers, channels and consumers from a
// configuration file. The values of all other keys must be valid.
func ReadBroker(r io.Reader, name string, environ []string) (*Broker, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxBrokerFile+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(text) > maxBrokerFile {
		return nil, fmt.Errorf("%s: want at most %d bytes", name, maxBrokerFile)
	}
	c := Default()
	c.from = make(map[string]source)
	if faults := c.readYAML(name, text); len(faults) > 0 {
		for i := range faults {
			faults[i] = redactError(faults[i])
		}
		return nil, errors.Join(faults...)
	}
	if len(c.Broker.Parties()) == 0 {
		return nil, fmt.Errorf("%s: it has no producers, channels or consumers; want broker: {channels: [{id: …, token-file: …}]}", name)
	}
	c.Broker.readVariables(environ)
	return &c.Broker, nil
}

// maxBrokerFile is the maximum size of a file that ReadBroker reads, in bytes.
const maxBrokerFile = 4 << 20

func (b *Broker) readVariables(environ []string) {
	for _, list := range []BrokerParties{b.Producers, b.Channels, b.Consumers} {
		list.readVariables(environ)
	}
}

// A partiesValue is a list of parties of one kind: producers, channels or
// consumers.
type partiesValue struct {
	at   *BrokerParties
	list domain.PartyList // producers or channels; zero for consumers, whose entries name their channels
}

func (v partiesValue) String() string {
	names := make([]string, len(*v.at))
	for i, p := range *v.at {
		names[i] = p.ID.FullName()
	}
	return strings.Join(names, ", ")
}

// Set parses a YAML list. A variable or flag contains the list in YAML's
// one-line syntax.
func (v partiesValue) Set(s string) error {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(s), &doc); err != nil || len(doc.Content) != 1 {
		return errors.New("want a list such as " + v.example())
	}
	return v.decode(doc.Content[0], "")
}

func (v partiesValue) isOfConsumers() bool { return v.list == domain.PartyList{} }

func (v partiesValue) example() string {
	if v.isOfConsumers() {
		return "[{channel: prices, id: billing, callback-url: 'https://example.org/hook', token-file: billing.token}]"
	}
	return "[{id: prices, name: Prices of today, token-file: prices.token}]"
}

// decode decodes a YAML list. Its error contains the position of every fault.
// Relative file paths are relative to folder.
func (v partiesValue) decode(list *yaml.Node, folder string) error {
	if list.Kind != yaml.SequenceNode {
		return errors.New("want a list such as " + v.example())
	}
	var ps BrokerParties
	var faults []error
	for _, item := range list.Content {
		p, err := v.decodeParty(resolveAlias(item), folder)
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("line %d: %w", item.Line, err))
		case slices.ContainsFunc(ps, func(x BrokerParty) bool { return x.ID == p.ID }):
			faults = append(faults, fmt.Errorf("line %d: %s stands in the list twice; keep one", item.Line, p.ID.FullName()))
		default:
			ps = append(ps, p)
		}
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	*v.at = ps
	return nil
}

func (v partiesValue) decodeParty(item *yaml.Node, folder string) (p BrokerParty, err error) {
	if item.Kind != yaml.MappingNode {
		return p, errors.New("want an entry such as " + strings.Trim(v.example(), "[]"))
	}
	known := []string{"id", "name", "token-file", "token-env", "token"}
	if v.isOfConsumers() {
		known = append(known, "channel", "callback-url")
	}
	texts, err := readEntry(item, known, "token")
	if err != nil {
		return p, err
	}
	p.Name = texts["name"]
	if p.ID, err = v.parseID(texts); err != nil {
		return p, err
	}
	if v.isOfConsumers() {
		if p.CallbackURL = texts["callback-url"]; p.CallbackURL == "" {
			return p, fmt.Errorf("%s has no callback-url; give the URL that the consumer is called at", p.ID.FullName())
		}
		if err := domain.CheckCallbackURL(p.CallbackURL); err != nil {
			return p, fmt.Errorf("callback-url of %s: %w", p.ID.FullName(), err)
		}
	}
	p.Token, err = tokenSourceOf(texts, "token", folder)
	return p, asKey(p.ID.FullName(), err)
}

// readEntry returns the texts in a list entry by key. Only the text of the key
// secret may be a secret.
func readEntry(item *yaml.Node, known []string, secret string) (map[string]string, error) {
	texts := make(map[string]string)
	for i := 0; i < len(item.Content); i += 2 {
		name, value := item.Content[i].Value, resolveAlias(item.Content[i+1])
		_, isTwice := texts[name]
		switch {
		case !slices.Contains(known, name):
			return nil, fmt.Errorf("%s: no such key; %s", name, suggestName(name, known))
		case isTwice:
			return nil, fmt.Errorf("%s stands there twice; keep one", name)
		case value.Kind != yaml.ScalarNode || value.Tag == "!!null" || value.Value == "":
			return nil, fmt.Errorf("%s: want a text", name)
		case name != secret && hasSecret(value.Value):
			return nil, fmt.Errorf("%s: the value holds a secret, so it is not shown; a %s belongs in %s-file or %s-env", name, secret, secret, secret)
		}
		texts[name] = value.Value
	}
	return texts, nil
}

// parseID returns the id of the party that a list entry describes.
func (v partiesValue) parseID(texts map[string]string) (domain.PartyID, error) {
	list := v.list
	if v.isOfConsumers() {
		if texts["channel"] == "" {
			return domain.PartyID{}, errors.New("it has no channel; give the id of one")
		}
		channel, err := domain.Channels.Parse(texts["channel"])
		if err != nil {
			return domain.PartyID{}, asKey("channel", err)
		}
		list = channel.Consumers()
	}
	if texts["id"] == "" {
		return domain.PartyID{}, errors.New("it has no id; choose one")
	}
	id, err := list.Parse(texts["id"])
	return id, asKey("id", err)
}

// tokenSourceOf returns the token source that a list entry describes. what is
// the key of the token.
func tokenSourceOf(texts map[string]string, what, folder string) (TokenSource, error) {
	inFile, inVariable := what+"-file", what+"-env"
	s := TokenSource{File: texts[inFile], Variable: texts[inVariable], Value: Secret(texts[what])}
	if what != "token" {
		s.what = what
	}
	n := 0
	for _, name := range []string{inFile, inVariable, what} {
		if texts[name] != "" {
			n++
		}
	}
	switch {
	case n > 1:
		return s, fmt.Errorf("want one of %s, %s and %s", inFile, inVariable, what)
	case strings.HasPrefix(s.Variable, envPrefix):
		return s, fmt.Errorf("%s: want the name of a variable that does not begin with %s, which the settings of the hub do", inVariable, envPrefix)
	case strings.Trim(s.Variable, variableLetters) != "":
		return s, fmt.Errorf("%s: want the name of a variable, of letters, digits and _", inVariable)
	}
	if s.File != "" && !filepath.IsAbs(s.File) {
		s.File = filepath.Join(folder, s.File)
	}
	return s, nil
}

const variableLetters = "_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
