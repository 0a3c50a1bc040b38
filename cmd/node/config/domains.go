package config

import (
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/domain"
)

type domainsValue Domains

func (v *domainsValue) String() string { return domainNames(Domains(*v)) }

// Set parses a YAML list. A variable or flag contains the list in YAML's
// one-line syntax.
func (v *domainsValue) Set(s string) error {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(s), &doc); err != nil || len(doc.Content) != 1 {
		return errors.New("want a list such as [{name: Billing, group: masterdata, content: inline}]")
	}
	return v.decode(doc.Content[0], "")
}

// decode decodes a YAML list. Its error contains the position of every fault.
func (v *domainsValue) decode(list *yaml.Node, _ string) error {
	if list.Kind != yaml.SequenceNode {
		return errors.New("want a list such as [{name: Billing, group: masterdata, content: inline}]")
	}
	var ds Domains
	var faults []error
	for i, item := range list.Content {
		d, err := decodeDomain(item)
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("domain %d: %w", i+1, err))
		case slices.ContainsFunc(ds, func(x Domain) bool { return x.Name == d.Name }):
			faults = append(faults, fmt.Errorf("domain %d: %s stands in the list twice; keep one", i+1, d.Name))
		default:
			ds = append(ds, d)
		}
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	*v = domainsValue(ds)
	return nil
}

func decodeDomain(item *yaml.Node) (d Domain, err error) {
	if item.Kind != yaml.MappingNode {
		return d, errors.New("want {name: …} with group and content if need be")
	}
	known := []string{"name", "group", "content", "queue", "reply-queue", "dequeue-queue", "ingest-queue"}
	seen := make(map[string]bool)
	for i := 0; i < len(item.Content); i += 2 {
		name, text := item.Content[i].Value, item.Content[i+1].Value
		if seen[name] {
			return d, fmt.Errorf("%s stands there twice; keep one", name)
		}
		seen[name] = true
		switch name {
		case "name":
			if d.Name, err = domain.ParseOrigin(text); err == nil {
				err = checkOnWire(d.Name)
			}
		case "group":
			d.Group, err = domain.ParseGroup(text)
		case "content":
			d.Content, err = domain.ParseContentMode(text)
		case "queue":
			err = asKey(name, queueName(&d.Queues.Request, text))
		case "reply-queue":
			err = asKey(name, queueName(&d.Queues.Reply, text))
		case "dequeue-queue":
			err = asKey(name, queueName(&d.Queues.Dequeue, text))
		case "ingest-queue":
			err = asKey(name, queueName(&d.Ingest, text))
		default:
			err = fmt.Errorf("%s: no such key; %s", name, suggestName(name, known))
		}
		if err != nil {
			return d, err
		}
	}
	if d.Name == (domain.Origin{}) {
		return d, errors.New("it has no name; give the origin that its events state")
	}
	return d, nil
}

// checkOnWire rejects a name that senders of the original system use for a
// different domain, because the hub would assign events with this name to that
// domain.
func checkOnWire(name domain.Origin) error {
	if other := contract.ParseOrigin(name.String()); other != name.String() {
		return fmt.Errorf("name: on the bus, %s is another name of %s; use that, or choose one of its own", name, other)
	}
	return nil
}

func asKey(name string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
