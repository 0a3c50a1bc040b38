package filter

import (
	"encoding/json"

	"github.com/messagehub/messagehub/domain"
)

// MetadataOf returns the metadata of a message: its attributes, its datacontenttype and its data.
// Data is left out if it is not JSON, takes more than [domain.MaxInline] bytes in a stored
// document, or exceeds the limits of metadata. So the metadata does not depend on whether the
// data is stored in a document or in a blob.
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

// attributesSize returns an upper bound for the length of the metadata as JSON, without data.
func attributesSize(m *domain.Message) int {
	const longest = len(`\u003c`) // length of the longest JSON escape of one byte
	size := len(`"datacontenttype":"",`) + longest*len(m.ContentType) + len(`{"data":}`)
	for name, value := range m.Attributes {
		size += longest*(len(name)+len(value)) + len(`"":"",`)
	}
	return size
}
