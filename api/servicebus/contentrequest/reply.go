package contentrequest

import (
	"bytes"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"google.golang.org/protobuf/proto"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// The reasons of a hub.Reply without content.
const (
	datasetNotFound     = "dataset-not-found"
	datasetNotAvailable = "dataset-not-available"
	internalError       = "internal-error"
	malformedReply      = "malformed-reply"
)

// Reasons for dead-lettering a message that is in the session of a reply but is not the reply. The
// reason malformedReply is also possible.
const (
	foreignRequest = "foreign-request"
	foreignBundle  = "foreign-bundle"
)

// Maximum sizes of a reply, in bytes.
const (
	maxReply = 64 << 10
	maxURI   = 2 << 10
)

// A classification says whether a message in the session of a reply is the reply, and otherwise why
// the message is dead-lettered.
type classification struct {
	counts               bool // whether the message is the reply
	reply                hub.Reply
	refusal, description string // reason and details of the dead letter; empty if the message is not dead-lettered
}

// classifyMessage classifies a message from the session of the reply.
func (a *attempt) classifyMessage(m *azservicebus.ReceivedMessage) classification {
	body := bodyOf(m)
	if len(body) == 0 || len(body) > maxReply {
		return newMalformed(fmt.Sprintf("its body has %d bytes; want 1 to %d", len(body), maxReply))
	}
	var r contract.DataBundleResponseContract
	if err := proto.Unmarshal(body, &r); err != nil {
		return newMalformed("its body is no DataBundleResponseContract")
	}
	if !isGUID(r.GetRequestId(), a.id) {
		return newRefused(foreignRequest, fmt.Sprintf("its RequestId is %q; want the RequestId of the session's request, %s", busclient.Printable(r.GetRequestId()), a.id))
	}
	if id := r.GetRequestIdempotencyId(); id != "" && id != a.process {
		return newRefused(foreignBundle, fmt.Sprintf("its RequestIdempotencyId is %q; want the id in the request, %q, or no id", busclient.Printable(id), a.process))
	}
	switch said := r.GetReply().(type) {
	case *contract.DataBundleResponseContract_Success:
		uri := said.Success.GetContentUri()
		if uri == "" || len(uri) > maxURI {
			return newMalformed(fmt.Sprintf("its contentUri has %d bytes; want 1 to %d", len(uri), maxURI))
		}
		return classification{counts: true, reply: hub.Reply{URI: uri}}
	case *contract.DataBundleResponseContract_Failure:
		return classification{counts: true, reply: hub.Reply{Failure: domain.ContentFailure{
			Reason: reasonOf(said.Failure.GetReason()), Text: busclient.Printable(said.Failure.GetFailureDescription()),
		}}}
	}
	return newMalformed("it has neither Success nor Failure")
}

// newMalformed returns the classification of a malformed reply. The domain has failed: a repeated
// request would get the same reply.
func newMalformed(why string) classification {
	return classification{
		counts:  true,
		reply:   hub.Reply{Failure: domain.ContentFailure{Reason: malformedReply, Text: why}},
		refusal: malformedReply, description: why,
	}
}

// newRefused returns the classification of a message that is not the reply. The reply may still
// arrive.
func newRefused(reason, why string) classification {
	return classification{refusal: reason, description: why}
}

func reasonOf(r contract.DataBundleResponseContract_RequestFailure_Reason) string {
	switch r {
	case contract.DataBundleResponseContract_RequestFailure_DatasetNotFound:
		return datasetNotFound
	case contract.DataBundleResponseContract_RequestFailure_DatasetNotAvailable:
		return datasetNotAvailable
	default: // the original treats unknown values as internal errors
		return internalError
	}
}

// bodyOf returns the body of a message. Some clients send the body in several parts.
func bodyOf(m *azservicebus.ReceivedMessage) []byte {
	if m.RawAMQPMessage == nil {
		return m.Body
	}
	return bytes.Join(m.RawAMQPMessage.Body.Data, nil)
}

// isGUID reports whether text is the GUID id in any of the formats that .NET writes.
func isGUID(text, id string) bool {
	const longest = 68 // {0x00000000,0x0000,0x0000,{0x00,0x00,0x00,0x00,0x00,0x00,0x00,0x00}}
	if len(text) > longest {
		return false
	}
	guid, ok := domain.FromGUID(text)
	return ok && guid == id
}
