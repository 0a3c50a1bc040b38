package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/messagehub/messagehub/domain"
)

type domainsValue Domains

func (v *domainsValue) String() string { return domainNames(Domains(*v)) }

// Set reads the list as it would stand in the file; YAML has a form that fits on
// one line.
func (v *domainsValue) Set(s string) error {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(s), &doc); err != nil || len(doc.Content) != 1 {
		return errors.New("want a list such as [{name: Billing, group: masterdata, content: inline}]")
	}
	return v.decode(doc.Content[0])
}

// decode reads the list and names every fault by its place.
func (v *domainsValue) decode(list *yaml.Node) error {
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
	known := []string{"name", "group", "content"}
	const noBus = "needs Service Bus, which this version does not have yet"
	seen := make(map[string]bool)
	for i := 0; i < len(item.Content); i += 2 {
		name, text := item.Content[i].Value, item.Content[i+1].Value
		if seen[name] {
			return d, fmt.Errorf("%s stands there twice; keep one", name)
		}
		seen[name] = true
		switch name {
		case "name":
			d.Name, err = domain.ParseOrigin(text)
		case "group":
			d.Group, err = domain.ParseGroup(text)
		case "content":
			if text == "request" {
				return d, errors.New("content: request " + noBus + "; use manifest or inline")
			}
			d.Content, err = domain.ParseContentMode(text)
		default:
			if strings.Contains(strings.ToLower(name), "queue") {
				return d, fmt.Errorf("%s: it %s; remove it", name, noBus)
			}
			err = fmt.Errorf("%s: no such key; %s", name, suggest(name, known))
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
