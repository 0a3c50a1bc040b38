package contract_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/messagehub/messagehub/api/servicebus/contract"
)

// golden contains messages and their encodings. The bytes were written by hand from the field table
// of the original and the encoding rules of protobuf: for each field, its number times 8 plus its
// wire type, followed by the length or the value. .NET writes the same bytes: it sorts fields by
// number and omits default values.
var golden = []struct {
	name    string
	message proto.Message
	bytes   string // hexadecimal digits, blanks and quoted text; fromText decodes them
}{
	{
		"an announcement",
		&contract.DataAvailableNotificationContract{
			UUID:             "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41",
			Recipient:        "6f1c2d3e-4b5a-4678-8a9b-0c1d2e3f4a5b",
			MessageType:      "timeseries",
			Origin:           "Wholesale",
			SupportsBundling: true,
			RelativeWeight:   300,
			DocumentType:     "RSM012",
		},
		`0a 24 "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"
		 12 24 "6f1c2d3e-4b5a-4678-8a9b-0c1d2e3f4a5b"
		 1a 0a "timeseries"
		 22 09 "Wholesale"
		 28 01
		 30 ac02
		 3a 06 "RSM012"`,
	},
	{
		"an announcement with nothing in it",
		&contract.DataAvailableNotificationContract{},
		``,
	},
	{
		"a negative weight, which takes ten bytes",
		&contract.DataAvailableNotificationContract{RelativeWeight: -1},
		`30 ffffffffffffffffff01`,
	},
	{
		"a request",
		&contract.DataBundleRequestContract{
			RequestId:                            "r",
			DataAvailableNotificationReferenceId: "bundle_actor",
			IdempotencyId:                        "bundle_actor",
			MessageType:                          "timeseries",
			ResponseFormatRequested:              contract.FormatXML,
			ResponseFromatVersion:                1.0,
		},
		`0a 01 "r"
		 12 0c "bundle_actor"
		 1a 0c "bundle_actor"
		 22 0a "timeseries"
		 2a 03 "Xml"
		 31 000000000000f03f`,
	},
	{
		"a reply with content",
		&contract.DataBundleResponseContract{
			RequestId:            "r",
			RequestIdempotencyId: "i",
			Reply: &contract.DataBundleResponseContract_Success{
				Success: &contract.DataBundleResponseContract_FileResource{ContentUri: "https://a/c/b_data"},
			},
		},
		`0a 01 "r"
		 12 01 "i"
		 1a 14
		    0a 12 "https://a/c/b_data"`,
	},
	{
		"a reply whose failure is the default one",
		&contract.DataBundleResponseContract{
			RequestId: "r",
			Reply:     failure(contract.DataBundleResponseContract_RequestFailure_DatasetNotFound, ""),
		},
		`0a 01 "r"
		 22 00`,
	},
	{
		"a reply that the data is not there yet",
		&contract.DataBundleResponseContract{
			Reply: failure(contract.DataBundleResponseContract_RequestFailure_DatasetNotAvailable, "later"),
		},
		`22 09
		    08 01
		    12 05 "later"`,
	},
	{
		"a reply that something broke",
		&contract.DataBundleResponseContract{
			Reply: failure(contract.DataBundleResponseContract_RequestFailure_InternalError, "boom"),
		},
		`22 08
		    08 0f
		    12 04 "boom"`,
	},
	{
		"a notice",
		&contract.DequeueContract{
			DataAvailableNotificationReferenceId: "bundle_actor",
			MarketOperator:                       "actor",
		},
		`0a 0c "bundle_actor"
		 12 05 "actor"`,
	},
}

func failure(reason contract.DataBundleResponseContract_RequestFailure_Reason, description string) *contract.DataBundleResponseContract_Failure {
	return &contract.DataBundleResponseContract_Failure{
		Failure: &contract.DataBundleResponseContract_RequestFailure{Reason: reason, FailureDescription: description},
	}
}

func TestMessages_HaveTheBytesOfTheOriginal(t *testing.T) {
	for _, tc := range golden {
		t.Run(tc.name, func(t *testing.T) {
			want := fromText(t, tc.bytes)
			got, err := proto.Marshal(tc.message)
			require.NoError(t, err)
			require.Equal(t, hex.EncodeToString(want), hex.EncodeToString(got))

			read := tc.message.ProtoReflect().New().Interface()
			require.NoError(t, proto.Unmarshal(want, read))
			require.True(t, proto.Equal(tc.message, read), "read %v, want %v", read, tc.message)
		})
	}
}

// fromText decodes hexadecimal digits and quoted text into bytes.
func fromText(t *testing.T, text string) []byte {
	t.Helper()
	var b []byte
	for _, word := range strings.Fields(text) {
		if quoted, ok := strings.CutPrefix(word, `"`); ok {
			b = append(b, strings.TrimSuffix(quoted, `"`)...)
			continue
		}
		digits, err := hex.DecodeString(word)
		require.NoError(t, err)
		b = append(b, digits...)
	}
	return b
}

func TestMessages_MayHaveFieldsOfALaterVersion(t *testing.T) {
	var notice contract.DequeueContract
	require.NoError(t, proto.Unmarshal(fromText(t, `0a 01 "a" 7a 03 "new" 12 01 "b"`), &notice))
	require.Equal(t, "a", notice.GetDataAvailableNotificationReferenceId())
	require.Equal(t, "b", notice.GetMarketOperator())
}

func TestReply_KeepsTheNumberOfALaterReason(t *testing.T) {
	var reply contract.DataBundleResponseContract
	require.NoError(t, proto.Unmarshal(fromText(t, `22 02 08 63`), &reply))
	require.Equal(t, "99", reply.GetFailure().GetReason().String())
}

func TestAReplyMayBeEmpty(t *testing.T) {
	var reply contract.DataBundleResponseContract
	require.NoError(t, proto.Unmarshal(fromText(t, `0a 01 "r"`), &reply))
	require.Nil(t, reply.GetReply())
	require.Nil(t, reply.GetSuccess())
	require.Nil(t, reply.GetFailure())
}

// FuzzMessages decodes arbitrary bytes as each message type. A message that was decoded can be
// encoded, and decoding the result returns an equal message.
func FuzzMessages(f *testing.F) {
	for _, tc := range golden {
		b, err := proto.Marshal(tc.message)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, m := range []proto.Message{
			new(contract.DataAvailableNotificationContract),
			new(contract.DataBundleRequestContract),
			new(contract.DataBundleResponseContract),
			new(contract.DequeueContract),
		} {
			if proto.Unmarshal(b, m) != nil {
				continue
			}
			written, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
			require.NoError(t, err)
			again := m.ProtoReflect().New().Interface()
			require.NoError(t, proto.Unmarshal(written, again))
			rewritten, err := proto.MarshalOptions{Deterministic: true}.Marshal(again)
			require.NoError(t, err)
			require.True(t, bytes.Equal(written, rewritten))
		}
	})
}
