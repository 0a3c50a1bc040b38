package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/messagehub/messagehub/api/identity"
	"github.com/messagehub/messagehub/api/internal/eventjson"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/subscribe"
)

// maxDraft is the maximum size of a subscription in a request, in bytes.
const maxDraft = 128 << 10

// jmespathType is the only type of an attachment.
const jmespathType = "jmespath"

// Delivery modes of a subscription.
const (
	asyncDelivery = "async" // the sender of an event does not wait for its delivery
	syncDelivery  = "sync"
)

// readDraft reads the subscription from the body of a request. The actor becomes its owner. Only
// operators may subscribe to changes of objects.
func (s *Server) readDraft(w http.ResponseWriter, r *http.Request) (subscribe.Draft, error) {
	text, err := readObject(w, r, maxDraft)
	if err != nil {
		return subscribe.Draft{}, err
	}
	d := draftDecoder{draft: subscribe.Draft{Subscription: domain.Subscription{Owner: actorOf(r.Context())}}}
	if err := d.decode(text); err != nil {
		return subscribe.Draft{}, refuse(notJSON, "Nothing was stored: the body must be one JSON object. %v.", err)
	}
	if len(d.faults) > 0 {
		return subscribe.Draft{}, badSubscription(d.faults)
	}
	if err := checkTopic(r.Context(), d.draft.Topic); err != nil {
		return subscribe.Draft{}, err
	}
	if d.draft.Topic != domain.ObjectsTopic {
		return d.draft, nil
	}
	if p := principalOf(r.Context()); p != nil {
		if d.draft.IsOperator = p.Has(identity.RoleOperatorRead); !d.draft.IsOperator {
			return d.draft, missingRole(w, []identity.Role{identity.RoleOperatorRead})
		}
		return d.draft, nil
	}
	isOperator, err := s.isOperator(w, r, bearerOf(r))
	if err == nil && !isOperator {
		err = missingOperator(w)
	}
	d.draft.IsOperator = isOperator
	return d.draft, err
}

// A draftDecoder decodes a subscription and collects its faults. A fault never contains a value of
// the subscription.
type draftDecoder struct {
	draft  subscribe.Draft
	faults []bodyFault
}

func (d *draftDecoder) report(pointer, detail string) {
	d.faults = append(d.faults, bodyFault{Pointer: pointer, Detail: detail})
}

// members calls set for each member of the JSON object text, with the member's name and pointer.
func (d *draftDecoder) members(pointer string, text []byte, set func(name, pointer string, value []byte)) error {
	if text[0] != '{' {
		d.report(pointer, "want an object, got "+eventjson.TypeOf(text))
		return nil
	}
	seen := make(map[string]bool)
	for m, err := range eventjson.Members(text) {
		if err != nil {
			return err
		}
		name := string(m.Name)
		at := pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(domain.Shorten(name))
		if seen[name] {
			d.report(at, "it occurs twice")
			continue
		}
		seen[name] = true
		set(name, at, m.Value)
	}
	return nil
}

func (d *draftDecoder) text(pointer string, value []byte, into *string) {
	if value[0] != '"' || json.Unmarshal(value, into) != nil {
		d.report(pointer, "want a string, got "+eventjson.TypeOf(value))
	}
}

func (d *draftDecoder) decode(text []byte) (err error) {
	nested := func(e error) {
		if err == nil {
			err = e
		}
	}
	hasURL := false
	into := map[string]*string{
		"topic": &d.draft.Topic, "callback_url": &d.draft.CallbackURL, "method": &d.draft.Method, "encoding": &d.draft.Encoding,
		"payload_form_field": &d.draft.PayloadFormField, "hmac_key_id": &d.draft.HMACKeyID, "jmespath_query": &d.draft.Filter,
	}
	nested(d.members("", text, func(name, pointer string, value []byte) {
		hasURL = hasURL || name == "callback_url"
		switch {
		case into[name] != nil:
			d.text(pointer, value, into[name])
		case name == "hmac_secret_key":
			d.draft.Secret = new(string)
			d.text(pointer, value, d.draft.Secret)
		case name == "delivery":
			d.delivery(pointer, value)
		case name == "max_rate":
			d.rate(pointer, value)
		case name == "max_concurrency":
			d.concurrency(pointer, value)
		case name == "ordered":
			if d.draft.IsOrdered = string(value) == "true"; !d.draft.IsOrdered && string(value) != "false" {
				d.report(pointer, "want true or false, got "+eventjson.TypeOf(value))
			}
		case name == "headers":
			d.draft.Headers = make(map[string]string)
			nested(d.members(pointer, value, func(name, pointer string, value []byte) {
				var header string
				d.text(pointer, value, &header)
				d.draft.Headers[name] = header
			}))
		case name == "form_fields":
			d.draft.FormFields = make(map[string]string)
			nested(d.members(pointer, value, func(name, pointer string, value []byte) {
				var field string
				d.text(pointer, value, &field)
				d.draft.FormFields[name] = field
			}))
		case name == "attachments":
			d.draft.Attachments = make(map[string]string)
			nested(d.members(pointer, value, func(name, pointer string, value []byte) {
				nested(d.attachment(name, pointer, value))
			}))
		case name == "es_query":
			d.report(pointer, "queries of Elasticsearch are not supported; use jmespath_query")
		default:
			d.report(pointer, "unknown field; known are attachments, callback_url, delivery, encoding, form_fields, headers, hmac_key_id, hmac_secret_key, jmespath_query, max_concurrency, max_rate, method, ordered, payload_form_field, topic")
		}
	}))
	if err == nil && !hasURL {
		d.report("/callback_url", "missing")
	}
	return err
}

func (d *draftDecoder) delivery(pointer string, value []byte) {
	switch string(value) {
	case `"` + asyncDelivery + `"`:
	case `"` + syncDelivery + `"`:
		d.draft.IsSync = true
	default:
		d.report(pointer, "want "+asyncDelivery+" or "+syncDelivery)
	}
}

func (d *draftDecoder) rate(pointer string, value []byte) {
	if json.Unmarshal(value, &d.draft.MaxRate) != nil || d.draft.MaxRate <= 0 {
		d.report(pointer, fmt.Sprintf("want %v to %v calls per second", domain.MinCallRate, domain.MaxCallRate))
	}
}

func (d *draftDecoder) concurrency(pointer string, value []byte) {
	if json.Unmarshal(value, &d.draft.MaxConcurrency) != nil || d.draft.MaxConcurrency < 1 {
		d.report(pointer, fmt.Sprintf("want 1 to %d calls at the same time", domain.MaxConcurrency))
	}
}

func (d *draftDecoder) attachment(name, pointer string, value []byte) error {
	kind, expression := "", ""
	faults := len(d.faults)
	err := d.members(pointer, value, func(name, pointer string, value []byte) {
		switch name {
		case "type":
			d.text(pointer, value, &kind)
		case "expression":
			d.text(pointer, value, &expression)
		default:
			d.report(pointer, "unknown field; known are expression, type")
		}
	})
	if err == nil && len(d.faults) == faults && kind != jmespathType {
		d.report(pointer+"/type", "want "+jmespathType)
	}
	d.draft.Attachments[name] = expression
	return err
}
