package domain

import "strconv"

// An ObjectField names a row's value that API searches can compare for equality.
type ObjectField string

// The values of ObjectField.
const (
	FieldVersion       ObjectField = "versionId"
	FieldSize          ObjectField = "size"
	FieldETag          ObjectField = "eTag"
	FieldSHA256        ObjectField = "sha256"
	FieldStorageClass  ObjectField = "storageClass"
	FieldArchiveStatus ObjectField = "archiveStatus"
	FieldReason        ObjectField = "reason"
	FieldIngestID      ObjectField = "ingestId"
)

// Field returns the text of the given field. It returns "" if the value is unknown.
func (r *ObjectRow) Field(f ObjectField) string {
	switch f {
	case FieldVersion:
		return r.Version.String()
	case FieldSize:
		if r.Size == nil {
			return ""
		}
		return strconv.FormatInt(*r.Size, 10)
	case FieldETag:
		return r.ETag
	case FieldSHA256:
		return r.SHA256
	case FieldStorageClass:
		return r.StorageClass
	case FieldArchiveStatus:
		return r.ArchiveStatus
	case FieldReason:
		return string(r.Reason)
	case FieldIngestID:
		return r.IngestID
	default:
		return ""
	}
}

// ParseIngestID reads the UUID by which users group objects, in upper or lower case. It returns the
// UUID in lower case, and an Invalid error for any other text.
func ParseIngestID(s string) (string, error) {
	id, err := parseUUID("ingest id", s)
	if err != nil {
		return "", err
	}
	return formatUUID(id), nil
}
