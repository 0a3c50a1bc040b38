package config

import (
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/messagehub/messagehub/domain"
)

// A Client is a client that may act as an actor: an entry in the registry of
// actors. An empty field matches any value.
type Client struct {
	Issuer, Client, Tenant string // claims that the client's token must contain

	CertificateName   string // DNS name, URI or e-mail address in the client's certificate
	CertificateSHA256 string // fingerprint of the client's certificate, in lower-case hexadecimal digits

	Actor  domain.ActorID
	Groups []domain.Group // groups that the client may use; empty for all groups
}

// Clients lists the entries of the registry of actors in file order.
type Clients []Client

// CheckIssuers fails if an entry's issuer is not in issuers. It also fails if
// an entry without an issuer could belong to several issuers, because their
// clients may have the same id.
func (c Clients) CheckIssuers(issuers []string) error {
	for _, client := range c {
		switch {
		case client.Issuer != "" && !slices.Contains(issuers, client.Issuer):
			return fmt.Errorf("actor %s: its issuer %.200q is not in oidc.issuer", client.Actor, client.Issuer)
		case client.Issuer == "" && client.Client != "" && len(issuers) > 1:
			return fmt.Errorf("actor %s: another issuer may have a client %.200q, too; add the issuer of this one", client.Actor, client.Client)
		}
	}
	return nil
}

type clientsValue Clients

const clientsExample = "[{client: 4f1e9b1c-…, tenant: 9a3d…, actor: 5790001330552, groups: [timeseries]}]"

var clientKeys = []string{"actor", "certificate-name", "certificate-sha256", "client", "groups", "issuer", "tenant"}

func (v *clientsValue) String() string {
	names := make([]string, len(*v))
	for i, c := range *v {
		names[i] = c.Actor.String()
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

// Set parses a YAML list. A variable or flag contains the list in YAML's
// one-line syntax.
func (v *clientsValue) Set(s string) error {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(s), &doc); err != nil || len(doc.Content) != 1 {
		return errors.New("want a list such as " + clientsExample)
	}
	return v.decode(doc.Content[0], "")
}

// decode decodes a YAML list. Its error contains the position of every fault.
func (v *clientsValue) decode(list *yaml.Node, _ string) error {
	if list.Kind != yaml.SequenceNode {
		return errors.New("want a list such as " + clientsExample)
	}
	clients := make(Clients, 0, len(list.Content))
	var faults []error
	for _, item := range list.Content {
		c, err := decodeClient(resolveAlias(item))
		if err != nil {
			faults = append(faults, fmt.Errorf("line %d: %w", item.Line, err))
		}
		clients = append(clients, c)
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	*v = clientsValue(clients)
	return nil
}

func decodeClient(item *yaml.Node) (c Client, err error) {
	if item.Kind != yaml.MappingNode {
		return c, errors.New("want an entry such as " + strings.Trim(clientsExample, "[]"))
	}
	texts := *item
	texts.Content = nil
	for i := 0; i < len(item.Content); i += 2 {
		if item.Content[i].Value != "groups" {
			texts.Content = append(texts.Content, item.Content[i], item.Content[i+1])
			continue
		}
		if c.Groups, err = decodeGroups(resolveAlias(item.Content[i+1])); err != nil {
			return c, err
		}
	}
	entry, err := readEntry(&texts, clientKeys, "")
	if err != nil {
		return c, err
	}
	c.Issuer, c.Client, c.Tenant = entry["issuer"], entry["client"], entry["tenant"]
	c.CertificateName = entry["certificate-name"]
	if c.CertificateSHA256, err = readFingerprint(entry["certificate-sha256"]); err != nil {
		return c, err
	}
	switch hasCertificate := c.CertificateName != "" || c.CertificateSHA256 != ""; {
	case c.Client == "" && !hasCertificate:
		return c, errors.New("it has neither client, certificate-name nor certificate-sha256, so it would be every client; give one")
	case c.Client == "" && (c.Issuer != "" || c.Tenant != ""):
		return c, errors.New("issuer and tenant are those of a token, and it has no client; give one, or remove them")
	}
	c.Actor, err = domain.ParseActorID(entry["actor"])
	return c, asKey("actor", err)
}

func decodeGroups(list *yaml.Node) ([]domain.Group, error) {
	if list.Kind != yaml.SequenceNode || len(list.Content) == 0 {
		return nil, errors.New("groups: want a list of names; leave it out for all groups")
	}
	groups := make([]domain.Group, len(list.Content))
	for i, item := range list.Content {
		var err error
		if groups[i], err = domain.ParseGroup(resolveAlias(item).Value); err != nil {
			return nil, asKey("groups", err)
		}
	}
	return groups, nil
}

// readFingerprint parses a SHA-256 in hexadecimal, with or without colons.
func readFingerprint(text string) (string, error) {
	const bytes = 32
	plain := strings.ToLower(strings.ReplaceAll(text, ":", ""))
	if sum, err := hex.DecodeString(plain); text != "" && (err != nil || len(sum) != bytes) {
		return "", fmt.Errorf("certificate-sha256: want %d bytes in hexadecimal digits, as openssl x509 -fingerprint -sha256 prints them", bytes)
	}
	return plain, nil
}

// File returns the path of the configuration file, or "" without a file.
func (c *Config) File() string { return c.file }

// AreActorsInFile reports whether the registry of actors comes from the
// configuration file, so that it can change while the node runs.
func (c *Config) AreActorsInFile() bool {
	return c.file != "" && c.from["actors"].layer <= byFile
}

// ReadActors reads only the registry of actors from a configuration file. The
// values of all other keys must be valid.
func ReadActors(path string, text []byte) (Clients, error) {
	c := Default()
	c.from = make(map[string]source)
	if faults := c.readYAML(filepath.Clean(path), text); len(faults) > 0 {
		for i := range faults {
			faults[i] = redactError(faults[i])
		}
		return nil, errors.Join(faults...)
	}
	return c.Actors, nil
}
