package subscriptionfile

import (
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
)

// An exportedFile is the YAML document that Export writes. Its members are in
// an order that is convenient for a reader.
type exportedFile struct {
	Actor         string          `yaml:"actor"`
	Subscriptions []exportedEntry `yaml:"subscriptions"`
}

type exportedEntry struct {
	UUID             string                        `yaml:"uuid"`
	Topic            string                        `yaml:"topic"`
	CallbackURL      string                        `yaml:"callback_url"`
	Method           string                        `yaml:"method"`
	Encoding         string                        `yaml:"encoding"`
	FormFields       map[string]string             `yaml:"form_fields,omitempty"`
	PayloadFormField string                        `yaml:"payload_form_field"`
	HMACKeyID        string                        `yaml:"hmac_key_id,omitempty"`
	Query            string                        `yaml:"jmespath_query,omitempty"`
	Attachments      map[string]exportedAttachment `yaml:"attachments,omitempty"`
	Delivery         string                        `yaml:"delivery,omitempty"`
	MaxRate          float64                       `yaml:"max_rate,omitempty"`
	MaxConcurrency   int                           `yaml:"max_concurrency,omitempty"`
	Ordered          bool                          `yaml:"ordered,omitempty"`
	Paused           bool                          `yaml:"paused"`
}

type exportedAttachment struct {
	Type       string `yaml:"type"`
	Expression string `yaml:"expression"`
}

// Export writes an actor's subscriptions in the format that Parse reads. The
// hub does not return secrets and header values, so the file lacks them; Plan
// then retains the stored values.
func Export(w io.Writer, actor string, stored []*hubclient.Subscription) error {
	f := exportedFile{Actor: actor, Subscriptions: make([]exportedEntry, len(stored))}
	for i, s := range stored {
		e := exportedEntry{
			UUID: s.ID.String(), Topic: s.Topic, CallbackURL: s.CallbackURL, Method: s.Method, Encoding: s.Encoding, FormFields: s.FormFields,
			PayloadFormField: s.PayloadFormField, HMACKeyID: s.HMACKeyID, Query: s.Filter, Paused: s.Paused,
			MaxRate: s.MaxRate, MaxConcurrency: s.MaxConcurrency, Ordered: s.IsOrdered,
		}
		if s.IsSync {
			e.Delivery = syncDelivery
		}
		for name, expression := range s.Attachments {
			if e.Attachments == nil {
				e.Attachments = make(map[string]exportedAttachment)
			}
			e.Attachments[name] = exportedAttachment{"jmespath", expression}
		}
		f.Subscriptions[i] = e
	}
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(f); err != nil {
		return err
	}
	return encoder.Close()
}
