package ingest

import (
	"cmp"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/messagehub/messagehub/api/internal/eventjson"
	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/domain"
)

// readContract decodes the single event of an announcement in protobuf. It accepts everything that
// the original accepted: a GUID in any format that .NET reads, an origin as a number, and a missing
// document type.
func readContract(body []byte) (*decodedBody, *rejection) {
	var sent contract.DataAvailableNotificationContract
	if err := proto.Unmarshal(body, &sent); err != nil {
		return nil, reject(reasonNotProtobuf, "The body is no DataAvailableNotificationContract (%v). A body of another form needs its content type, such as %s.", err, contract.JSON)
	}
	a := &decodedBody{fault: contractFault}
	wrong := func(field string, err error) {
		if err != nil {
			a.faults = append(a.faults, eventjson.Fault{Pointer: field, Detail: err.Error()})
			a.total++
		}
	}
	event := domain.Event{SupportsBundling: sent.GetSupportsBundling()}
	var err error
	event.ID, err = domain.ParseEventID(plainRecipient(sent.GetUUID()))
	wrong("UUID", err)
	event.Recipient, err = parseRecipient(sent.GetRecipient())
	wrong("recipient", err)
	event.ContentType, err = domain.ParseContentType(sent.GetMessageType())
	wrong("messageType", err)
	event.Origin, err = domain.ParseOrigin(contract.ParseOrigin(strings.TrimSpace(sent.GetOrigin())))
	wrong("origin", err)
	event.Weight, err = parseWeight(body, sent.GetRelativeWeight())
	wrong("relativeWeight", err)
	if documentType := sent.GetDocumentType(); strings.TrimSpace(documentType) != "" {
		event.DocumentType, err = domain.ParseDocumentType(documentType)
		wrong("documentType", err)
	} else if event.ContentType != (domain.ContentType{}) {
		event.DocumentType, err = domain.ParseDocumentType(sent.GetMessageType())
		wrong("documentType", err)
	}
	if a.total == 0 {
		a.events = []domain.Event{event}
	}
	return a, nil
}

// parseRecipient parses the id of an actor: a GUID, or an id such as a GLN.
func parseRecipient(text string) (domain.ActorID, error) {
	const empty = "00000000-0000-0000-0000-000000000000"
	id := plainRecipient(text)
	if id == empty {
		return domain.ActorID{}, domain.Errorf(domain.Invalid, "actor id: the empty GUID names no actor")
	}
	return domain.ParseActorID(id)
}

// parseWeight rejects invalid weights. It also rejects a weight of more than 32 bits, because
// protobuf would silently use only the lower 32 bits.
func parseWeight(body []byte, read int32) (domain.Weight, error) {
	const (
		relativeWeight = 6
		negative       = math.MaxUint64 - math.MaxInt32 // a varint from this value on is a negative 32-bit number
	)
	for len(body) > 0 {
		number, kind, n := protowire.ConsumeTag(body)
		body = body[max(n, 0):]
		if number == relativeWeight && kind == protowire.VarintType {
			if sent, n := protowire.ConsumeVarint(body); n > 0 && sent > math.MaxInt32 && sent < negative {
				return 0, domain.Errorf(domain.Invalid, "weight: want at most %d (KB), got %d", math.MaxInt32, sent)
			}
		}
		value := protowire.ConsumeFieldValue(number, kind, body)
		if n < 0 || value < 0 {
			break // impossible, because proto.Unmarshal has decoded the whole body
		}
		body = body[value:]
	}
	return domain.NewWeight(int64(read))
}

// contractNames maps the field names of the HTTP API to the names in the contract, where the names
// differ.
var contractNames = map[string]string{"id": "UUID", "contentType": "messageType", "weight": "relativeWeight"}

// contractFault converts the hub's error for a field of the event to a fault with the protobuf name
// of the field.
func contractFault(_ int, field, detail string) eventjson.Fault {
	return eventjson.Fault{Pointer: cmp.Or(contractNames[field], field), Detail: detail}
}
