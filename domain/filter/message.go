package filter

import (
	"encoding/json"

	"github.com/messagehub/messagehub/domain"
)

// MetadataOf returns the metadata of a message: its attributes, datacontenttype, and data if
// that is JSON, has at most [domain.MaxInline] bytes in a stored document, and fits the limits
// of metadata. So the result depends only on the message, not on where it is stored.
func MetadataOf(m *domain.Message) Metadata {
	all := make(map[string]any, len(m.Attributes)+2)
	for name, value := range m.Attributes {
		all[name] = value
	}
	delete(all, "data")
	if m.ContentType != "" {
		all["datacontenttype"] = m.ContentType
	}
	metadata := Metadata{all}
	if m.Payload == nil || !m.HasJSON() || m.InlineBytes() > domain.MaxInline || len(m.Payload) > MaxMetadata-attributesSize(m) {
		return metadata
	}
	var data any
	if json.Unmarshal(m.Payload, &data) != nil || countValues(data)+countValues(all) >= MaxValues {
		return metadata
	}
	all["data"] = data
	return metadata
}

// attributesSize returns an upper limit for the size of the attributes of a message as JSON.
func attributesSize(m *domain.Message) int {
	const longest = len(`\u003c`) // the longest escape of one byte
	size := len(`"datacontenttype":"",`) + longest*len(m.ContentType) + len(`{"data":}`)
	for name, value := range m.Attributes {
		size += longest*(len(name)+len(value)) + len(`"":"",`)
	}
	return size
}
