package webhook

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"mime/multipart"
	"slices"

	"github.com/messagehub/messagehub/domain"
)

// A notification is the JSON that a call contains. It is the whole body, or one field of a form.
type notification struct {
	TransactionID  string          `json:"transaction_id"`
	SubscriptionID string          `json:"subscription_id"`
	Filter         string          `json:"jmespath_query,omitempty"`
	Event          map[string]any  `json:"event"`
	Attachments    json.RawMessage `json:"attachments,omitempty"`
}

// encodeBody returns the body of a call and its content type. They are the same in each attempt.
func (d *Delivery) encodeBody() (body []byte, contentType string, err error) {
	payload, err := json.Marshal(notification{
		TransactionID: d.ID, SubscriptionID: d.Subscription, Filter: d.Settings.Filter,
		Event: encodeEvent(d.Message), Attachments: d.Attachments,
	})
	if err != nil {
		return nil, "", &prepareError{"the message cannot be encoded as JSON"}
	}
	if d.Settings.Encoding != domain.FormEncoding {
		return payload, domain.JSONEncoding, nil
	}
	return encodeForm(d.Settings, payload)
}

// encodeEvent returns a message in the JSON format of CloudEvents. It includes JSON data unchanged,
// and encodes any other data in Base64.
func encodeEvent(m *domain.Message) map[string]any {
	e := make(map[string]any, len(m.Attributes)+3)
	for name, value := range m.Attributes {
		e[name] = value
	}
	if m.ID != "" && e["id"] == nil {
		e["id"] = m.ID
	}
	delete(e, "data")
	delete(e, "data_base64")
	if m.ContentType != "" {
		e["datacontenttype"] = m.ContentType
	}
	switch {
	case m.Payload == nil:
	case m.HasJSON() && json.Valid(m.Payload):
		e["data"] = json.RawMessage(m.Payload)
	default:
		e["data_base64"] = m.Payload
	}
	return e
}

// encodeForm returns a multipart form with the fields of a subscription and the payload. Its
// boundary depends only on the content.
func encodeForm(s *domain.Subscription, payload []byte) (body []byte, contentType string, err error) {
	var b bytes.Buffer
	h := sha256.New()
	names := slices.Sorted(maps.Keys(s.FormFields))
	for _, name := range names {
		h.Write([]byte(name + "\n" + s.FormFields[name] + "\n"))
	}
	h.Write(payload)
	w := multipart.NewWriter(&b)
	if err := w.SetBoundary(hex.EncodeToString(h.Sum(nil))[:48]); err != nil {
		return nil, "", err
	}
	for _, name := range names {
		if err := w.WriteField(name, s.FormFields[name]); err != nil {
			return nil, "", err
		}
	}
	if err := w.WriteField(s.PayloadFormField, string(payload)); err != nil {
		return nil, "", err
	}
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	return b.Bytes(), w.FormDataContentType(), nil
}
