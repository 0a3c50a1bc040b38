package objectjson_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/internal/objectjson"
	"github.com/messagehub/messagehub/domain"
)

const at = "2026-03-01T12:00:00Z"

// record returns an S3 record. If more is not empty, it replaces the members of the record's
// object.
func record(name, key string, more ...string) string {
	object := fmt.Sprintf(`"key":%q,"sequencer":"0055AED6DCD90281E4"`, key)
	if len(more) > 0 {
		object = strings.Join(more, ",")
	}
	return fmt.Sprintf(`{"eventVersion":"2.1","eventSource":"aws:s3","eventTime":%q,"eventName":%q,"s3":{"bucket":{"name":"readings"},"object":{%s}}}`, at, name, object)
}

// records returns an S3 notification with these records.
func records(all ...string) string { return `{"Records":[` + strings.Join(all, ",") + `]}` }

// bridge returns an EventBridge event. detail contains the members after the object.
func bridge(name, object, detail string) string {
	return fmt.Sprintf(`{"version":"0","id":"17793124-05d4-b198-2fde-7ededc63b103","detail-type":%q,"source":"aws.s3","time":%q,"detail":{"bucket":{"name":"readings"},"object":{%s}%s}}`,
		name, at, object, detail)
}

const (
	topic = "/subscriptions/x/resourceGroups/rg/providers/Microsoft.Storage/storageAccounts/Meters"
	blob  = "/blobServices/default/containers/march/blobs/7 +%.csv"
)

// grid returns a blob event in the format of Event Grid.
func grid(name, data string) string {
	return fmt.Sprintf(`{"topic":%q,"subject":%q,"eventType":%q,"id":"831e1650-001e-001b-66ab-eeb76e069631","data":{%s},"dataVersion":"","metadataVersion":"1","eventTime":%q}`, topic, blob, name, data, at)
}

// cloud returns the event of grid as a CloudEvent.
func cloud(name, data string) string {
	return fmt.Sprintf(`{"specversion":"1.0","source":%q,"subject":%q,"type":%q,"id":"831e1650-001e-001b-66ab-eeb76e069631","time":%q,"data":{%s}}`, topic, blob, name, at, data)
}

// quoted returns text as a quoted JSON string.
func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func sqs(id, body string) string {
	return `{"messageId":"` + id + `","receiptHandle":"x","body":` + quoted(body) + `,"eventSource":"aws:sqs"}`
}

func sns(id, message string) string {
	return `{"Type":"Notification","MessageId":"` + id + `","TopicArn":"arn:aws:sns:x","Message":` + quoted(message) + `}`
}

func parse(t *testing.T, text string) *objectjson.Events {
	t.Helper()
	got, err := objectjson.Parse([]byte(text), objectjson.Options{})
	require.NoError(t, err, text)
	return got
}

// parseOne returns the only event in text.
func parseOne(t *testing.T, text string) objectjson.Event {
	t.Helper()
	got := parse(t, text)
	require.Empty(t, got.Faults, text)
	require.Len(t, got.Events, 1, text)
	require.NoError(t, got.Events[0].Check())
	return got.Events[0]
}

// faults returns the index, pointer and reason of each fault as text.
func faults(got *objectjson.Events) []string {
	all := []string{}
	for _, f := range got.Faults {
		all = append(all, fmt.Sprintf("%d %s %s", f.Index, f.Pointer, f.Reason))
	}
	return all
}

// FM-3: the name of an event determines its type, marker and reason, in both S3 formats and both
// Azure formats.
func TestEventName_DeterminesTypeMarkerAndReason(t *testing.T) {
	const object = `"key":"k","sequencer":"617f08299329d189"`
	for text, want := range map[string]string{
		record("ObjectCreated:Put", "k"):                                                                             "Created CreatedPut",
		record("s3:ObjectCreated:Put", "k"):                                                                          "Created CreatedPut",
		record("ObjectCreated:Post", "k"):                                                                            "Created CreatedPost",
		record("ObjectCreated:Copy", "k"):                                                                            "Created CreatedCopy",
		record("ObjectCreated:CompleteMultipartUpload", "k"):                                                         "Created CreatedCompleteMultipartUpload",
		record("ObjectCreated:New", "k"):                                                                             "Created Unknown",
		record("ObjectRestore:Completed", "k"):                                                                       "Created Restored",
		record("ObjectRestore:Delete", "k"):                                                                          "Created RestoreExpired",
		record("LifecycleTransition", "k"):                                                                           "Created StorageClassChanged",
		record("IntelligentTiering", "k"):                                                                            "Created StorageClassChanged",
		record("ObjectRemoved:Delete", "k"):                                                                          "Deleted Deleted",
		record("ObjectRemoved:DeleteMarkerCreated", "k"):                                                             "Deleted marker Deleted",
		record("LifecycleExpiration:Delete", "k"):                                                                    "Deleted DeletedLifecycle",
		record("LifecycleExpiration:DeleteMarkerCreated", "k"):                                                       "Deleted marker DeletedLifecycle",
		record("ObjectRestore:Post", "k"):                                                                            "ignored ObjectRestore:Post",
		record("ObjectTagging:Put", "k"):                                                                             "ignored ObjectTagging:Put",
		record("ReducedRedundancyLostObject", "k"):                                                                   "ignored ReducedRedundancyLostObject",
		record("Replication:OperationFailedReplication", "k"):                                                        "ignored Replication:OperationFailedReplication",
		`{"Service":"Amazon S3","Event":"s3:TestEvent","Bucket":"b"}`:                                                "ignored s3:TestEvent",
		bridge("Object Created", object, `,"reason":"PutObject"`):                                                    "Created CreatedPut",
		bridge("Object Created", object, `,"reason":"POST Object"`):                                                  "Created CreatedPost",
		bridge("Object Created", object, `,"reason":"CopyObject"`):                                                   "Created CreatedCopy",
		bridge("Object Created", object, `,"reason":"CompleteMultipartUpload"`):                                      "Created CreatedCompleteMultipartUpload",
		bridge("Object Created", object, `,"reason":"New"`):                                                          "Created Unknown",
		bridge("Object Restore Completed", object, ""):                                                               "Created Restored",
		bridge("Object Restore Expired", object, ""):                                                                 "Created RestoreExpired",
		bridge("Object Storage Class Changed", object, ""):                                                           "Created StorageClassChanged",
		bridge("Object Access Tier Changed", object, ""):                                                             "Created StorageClassChanged",
		bridge("Object Deleted", object, ""):                                                                         "Deleted Deleted",
		bridge("Object Deleted", object, `,"reason":"DeleteObject","deletion-type":"Permanently Deleted"`):           "Deleted Deleted",
		bridge("Object Deleted", object, `,"reason":"DeleteObject","deletion-type":"Delete Marker Created"`):         "Deleted marker Deleted",
		bridge("Object Deleted", object, `,"reason":"Lifecycle Expiration","deletion-type":"Permanently Deleted"`):   "Deleted DeletedLifecycle",
		bridge("Object Deleted", object, `,"reason":"Lifecycle Expiration","deletion-type":"Delete Marker Created"`): "Deleted marker DeletedLifecycle",
		bridge("Object Restore Initiated", object, ""):                                                               "ignored Object Restore Initiated",
		bridge("Object Tags Added", object, ""):                                                                      "ignored Object Tags Added",
		bridge("Object ACL Updated", object, ""):                                                                     "ignored Object ACL Updated",
		grid("Microsoft.Storage.BlobCreated", `"api":"PutBlob"`):                                                     "Created CreatedPut",
		grid("Microsoft.Storage.BlobCreated", `"api":"PutBlockList"`):                                                "Created CreatedCompleteMultipartUpload",
		grid("Microsoft.Storage.BlobCreated", `"api":"CopyBlob"`):                                                    "Created CreatedCopy",
		grid("Microsoft.Storage.BlobCreated", `"api":"FlushWithClose"`):                                              "Created CreatedPut",
		grid("Microsoft.Storage.BlobCreated", `"api":"SftpCommit"`):                                                  "Created CreatedPut",
		grid("Microsoft.Storage.BlobCreated", `"api":"New"`):                                                         "Created Unknown",
		grid("Microsoft.Storage.BlobCreated", `"api":"CreateFile"`):                                                  "ignored Microsoft.Storage.BlobCreated CreateFile",
		grid("Microsoft.Storage.BlobCreated", `"api":"SftpCreate"`):                                                  "ignored Microsoft.Storage.BlobCreated SftpCreate",
		grid("Microsoft.Storage.BlobDeleted", `"api":"DeleteBlob"`):                                                  "Deleted Deleted",
		grid("Microsoft.Storage.BlobTierChanged", `"api":"SetBlobTier"`):                                             "Created StorageClassChanged",
		grid("Microsoft.Storage.AsyncOperationInitiated", `"api":"SetBlobTier"`):                                     "ignored Microsoft.Storage.AsyncOperationInitiated",
		grid("Microsoft.Storage.DirectoryRenamed", `"api":"RenameDirectory"`):                                        "ignored Microsoft.Storage.DirectoryRenamed",
		grid("Microsoft.Storage.BlobInventoryPolicyCompleted", ``):                                                   "ignored Microsoft.Storage.BlobInventoryPolicyCompleted",
		cloud("Microsoft.Storage.BlobCreated", `"api":"PutBlob"`):                                                    "Created CreatedPut",
		cloud("Microsoft.Storage.BlobDeleted", `"api":"DeleteBlob"`):                                                 "Deleted Deleted",
		cloud("com.example.made", ``):                                                                                "ignored com.example.made",
	} {
		parsed := parse(t, text)
		require.Empty(t, parsed.Faults, text)
		require.Equal(t, 1, parsed.Count)
		var got string
		if parsed.Ignored == 1 {
			got = "ignored " + parsed.IgnoredNames[0]
		} else {
			e := parsed.Events[0]
			got = e.Type.String() + map[bool]string{true: " marker"}[e.Marker] + " " + string(e.Reason)
		}
		require.Equal(t, want, got, text)
	}
}

func TestS3Event_HasAllFieldsOfItsMessage(t *testing.T) {
	hex := func(s string) domain.Sequencer {
		q, err := domain.ParseSequencer(domain.HexSequencer, s)
		require.NoError(t, err)
		return q
	}
	size := int64(9223372036854775807)
	version, err := domain.ParseVersionID("096fKK")
	require.NoError(t, err)
	want := domain.ObjectEvent{
		Version: version, Type: domain.ObjectCreated, Sequencer: hex("0055aed6DCD90281E4"), Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		ObjectFacts: domain.ObjectFacts{Size: &size, ETag: `"d41d"`, Reason: domain.CreatedPut},
	}
	direct := parseOne(t, record("ObjectCreated:Put", "", `"key":"a+b%2B%20c/%C3%A9"`, `"size":9223372036854775807`, `"eTag":"d41d"`, `"versionId":"096fKK"`, `"sequencer":"0055aed6DCD90281E4"`))
	require.Equal(t, "readings", direct.Name.Bucket())
	require.Equal(t, "a b+ c/é", direct.Name.Key(), "it is encoded as a form")
	require.Equal(t, want, direct.ObjectEvent)

	bridged := parseOne(t, bridge("Object Created", `"key":"a+b%2B c/é","size":9223372036854775807,"etag":"d41d","version-id":"096fKK","sequencer":"0055aed6DCD90281E4"`, `,"reason":"PutObject"`))
	require.Equal(t, "a+b%2B c/é", bridged.Name.Key(), "it is not encoded")
	require.Equal(t, want, bridged.ObjectEvent)
}

func TestAzureEvent_HasAllFieldsOfItsMessage(t *testing.T) {
	sequencer, err := domain.ParseSequencer(domain.OpaqueSequencer, "00000000000004420000000000028963")
	require.NoError(t, err)
	size := int64(524288)
	want := domain.ObjectEvent{
		Type: domain.ObjectCreated, Sequencer: sequencer, Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		ObjectFacts: domain.ObjectFacts{Size: &size, ETag: `"0x8D4BCC2E4835CD0"`, StorageClass: "Hot", Reason: domain.CreatedCompleteMultipartUpload},
	}
	const data = `"api":"PutBlockList","eTag":"0x8D4BCC2E4835CD0","contentLength":524288,"accessTier":"Hot","sequencer":"00000000000004420000000000028963","storageDiagnostics":{"batchId":"x"}`
	encoded := strings.Replace(cloud("Microsoft.Storage.BlobCreated", ""), `"data":{}`, `"data_base64":"`+base64.StdEncoding.EncodeToString([]byte("{"+data+"}"))+`"`, 1)
	for _, text := range []string{
		grid("Microsoft.Storage.BlobCreated", data), "[" + grid("Microsoft.Storage.BlobCreated", data) + "]",
		cloud("Microsoft.Storage.BlobCreated", data), "[" + cloud("Microsoft.Storage.BlobCreated", data) + "]", encoded,
	} {
		e := parseOne(t, text)
		require.Equal(t, "meters/march", e.Name.Bucket())
		require.Equal(t, "7 +%.csv", e.Name.Key())
		require.Equal(t, want, e.ObjectEvent)
	}
}

func TestCloudEventInTheBinaryMode(t *testing.T) {
	h := http.Header{}
	for name, value := range map[string]string{
		"ce-specversion": "1.0", "ce-id": "7", "ce-source": topic, "ce-subject": strings.ReplaceAll(blob, "%", "%25"), "ce-time": at,
		"ce-type": "Microsoft.Storage.BlobDeleted", "Content-Type": "application/json",
	} {
		h.Set(name, value)
	}
	require.True(t, objectjson.IsBinary(h))
	got, err := objectjson.ParseBinary(h, []byte(`{"api":"DeleteBlob","sequencer":"1"}`), objectjson.Options{})
	require.NoError(t, err)
	require.Empty(t, got.Faults)
	require.Equal(t, "meters/march", got.Events[0].Name.Bucket())
	require.Equal(t, "7 +%.csv", got.Events[0].Name.Key())
	for body, want := range map[string]string{
		``: "0 /data missing-field", `{`: "0 /data not-json", `[]`: "0 /data wrong-type", `{"api":1}`: "0 /data/api wrong-type",
		`{"a":1,"a":2}`: "0 /data/a duplicate-field",
	} {
		got, err := objectjson.ParseBinary(h, []byte(body), objectjson.Options{})
		require.NoError(t, err)
		require.Equal(t, []string{want}, faults(got), body)
	}
	h.Set("Ce-Time", "yesterday")
	got, err = objectjson.ParseBinary(h, []byte(`{}`), objectjson.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"0 /time invalid-cloudevent"}, faults(got))
	h.Set("Ce-Type", "other")
	got, err = objectjson.ParseBinary(h, nil, objectjson.Options{})
	require.NoError(t, err)
	require.Equal(t, 1, got.Ignored)
}

func TestRenamedBlobIsADeletionAndACreation(t *testing.T) {
	const host = "https://meters.dfs.core.windows.net"
	for _, tc := range []struct{ name, subject, source, destination, want string }{
		{"plain", "b.txt", "/fs/a.txt", "/fs/b.txt", "meters/fs a.txt"},
		{"paths are encoded", "b c%41", "/fs/a%20c", "/fs/b%20c%2541", "meters/fs a c"},
		{"paths are not encoded", "b c%41", "/fs/a%20c", "/fs/b c%41", "meters/fs a%20c"},
		{"it does not show, so as URLs are", "b", "/other/a%20c", "/fs/b", "meters/other a c"},
		{"no destination", "b", "/fs/d/a%2Bc+", "", "meters/fs d/a+c+"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			data := `"api":"RenameFile","sourceUrl":"` + host + tc.source + `","sequencer":"0000000000000000000000000000AB"`
			if tc.destination != "" {
				data += `,"destinationUrl":"` + host + tc.destination + `"`
			}
			text := strings.Replace(grid("Microsoft.Storage.BlobRenamed", data), blob, "/blobServices/default/containers/fs/blobs/"+tc.subject, 1)
			got := parse(t, text)
			require.Empty(t, got.Faults)
			require.Equal(t, 1, got.Count)
			require.Len(t, got.Events, 2)
			source, destination := got.Events[0], got.Events[1]
			require.Equal(t, tc.want, source.Name.Bucket()+" "+source.Name.Key())
			require.Equal(t, domain.ObjectDeleted, source.Type)
			require.Equal(t, "meters/fs "+tc.subject, destination.Name.Bucket()+" "+destination.Name.Key())
			require.Equal(t, domain.ObjectCreated, destination.Type)
			require.Equal(t, source.Sequencer, destination.Sequencer)
		})
	}
	for source, want := range map[string]string{
		`7`: "wrong-type", `null`: "missing-field", `"a"`: "invalid-subject", `"https://h/fs"`: "invalid-subject", `"https://h/fs/%zz"`: "invalid-subject",
		`"https://h/march/7%20+%25.csv"`: "invalid-subject",
	} {
		require.Equal(t, []string{"0 /data/sourceUrl " + want}, faults(parse(t, grid("Microsoft.Storage.BlobRenamed", `"sourceUrl":`+source))), source)
	}
}

func TestParse_ReadsStorageClassAndArchiveStatus(t *testing.T) {
	const object = `"key":"k","sequencer":"1"`
	direct := func(name, more string) string { return strings.TrimSuffix(record(name, "k"), "}") + "," + more + "}" }
	for text, want := range map[string][2]string{
		direct("ObjectRestore:Completed", `"glacierEventData":{"restoreEventData":{"lifecycleRestoreStorageClass":"GLACIER"}}`):                                       {"GLACIER", ""},
		direct("LifecycleTransition", `"lifecycleEventData":{"transitionEventData":{"destinationStorageClass":"DEEP_ARCHIVE"}}`):                                      {"DEEP_ARCHIVE", ""},
		direct("IntelligentTiering", `"intelligentTieringEventData":{"destinationAccessTier":"ARCHIVE_ACCESS"}`):                                                      {"INTELLIGENT_TIERING", "ARCHIVE_ACCESS"},
		strings.Replace(direct("IntelligentTiering", `"intelligentTieringEventData":{"destinationAccessTier":"DEEP_ARCHIVE_ACCESS"}`), `"object"`, `"get_object"`, 1): {"INTELLIGENT_TIERING", "DEEP_ARCHIVE_ACCESS"},
		bridge("Object Restore Completed", object, `,"source-storage-class":"GLACIER"`):                                                                               {"GLACIER", ""},
		bridge("Object Storage Class Changed", object, `,"destination-storage-class":"STANDARD_IA"`):                                                                  {"STANDARD_IA", ""},
		bridge("Object Access Tier Changed", object, `,"destination-access-tier":"ARCHIVE_ACCESS"`):                                                                   {"INTELLIGENT_TIERING", "ARCHIVE_ACCESS"},
		bridge("Object Access Tier Changed", object, `,"destination-access-tier":"FREQUENT_ACCESS"`):                                                                  {"INTELLIGENT_TIERING", ""},
		grid("Microsoft.Storage.BlobTierChanged", `"accessTier":"Archive","previousTier":"Hot"`):                                                                      {"Archive", ""},
	} {
		e := parseOne(t, text)
		require.Equal(t, want, [2]string{e.StorageClass, e.ArchiveStatus}, text)
	}
}

// A notification with two records is inside each kind of message that can contain it. Parse reads
// both records.
func TestParse_ReadsMessagesInsideMessages(t *testing.T) {
	inside := records(record("ObjectCreated:Put", "a"), record("ObjectCreated:Put", ""))
	for text, pointer := range map[string]string{
		inside:                              "/Records/1",
		"[" + inside + "]":                  "/0/Records/1",
		sqs("1", inside):                    "/body/Records/1",
		sns("1", inside):                    "/Message/Records/1",
		sqs("1", sns("1", inside)):          "/body/Message/Records/1",
		records(sqs("1", inside)):           "/Records/0/body/Records/1",
		records(sqs("1", sns("2", inside))): "/Records/0/body/Message/Records/1",
		records(`{"EventSource":"aws:sns","Sns":` + sns("1", inside) + `}`): "/Records/0/Sns/Message/Records/1",
		`{"Messages":[{"MessageId":"1","Body":` + quoted(inside) + `}]}`:    "/Messages/0/Body/Records/1",
		`{"MessageId":"1","Body":` + quoted(inside) + `}`:                   "/Body/Records/1",
	} {
		got := parse(t, text)
		require.Equal(t, 2, got.Count, text)
		require.Equal(t, []string{"1 " + pointer + "/s3/object/key invalid-name"}, faults(got), text)
		require.Len(t, got.Events, 1)
		require.Equal(t, "a", got.Events[0].Name.Key())
	}
	both := parse(t, "["+strings.Join([]string{grid("Microsoft.Storage.BlobDeleted", ""), sqs("1", bridge("Object Deleted", `"key":"k"`, "")), record("ObjectRemoved:Delete", "k")}, ",")+"]")
	require.Len(t, both.Events, 3)
	require.Equal(t, 2, both.Events[2].Index)
}

// nested returns depth nested lists, each in a member called name.
func nested(name string, depth int) string {
	return strings.Repeat(`{"`+name+`":[`, depth) + strings.Repeat("]}", depth)
}

func TestParse_ReportsInvalidMessages(t *testing.T) {
	deep := records(record("ObjectCreated:Put", "a"))
	for range 5 {
		deep = sqs("1", deep)
	}
	for text, want := range map[string]string{
		deep:                             "0 /body/body/body/body too-many-shells",
		nested("Records", 100_000):       "0 /Records/0/Records/0/Records too-many-shells",
		nested("Messages", 3):            "0 /Messages/0/Messages/0/Messages too-many-shells",
		"[" + nested("Records", 2) + "]": "0 /0/Records/0/Records too-many-shells",
		sqs("1", ""):                     "0 /body not-json",
		sqs("1", "x"):                    "0 /body not-json",
		sqs("1", "[1,"):                  "1 /body not-json",
		`{"messageId":"1","body":7}`:     "0 /body wrong-type",
		`{"messageId":1,"body":"{}"}`:    "0 /messageId wrong-type",
		`{"Type":"SubscriptionConfirmation","TopicArn":"a","Message":"Confirm","SubscribeURL":"https://x"}`: "0  subscription-not-confirmed",
		`{"Sns":7}`:                   "0 /Sns wrong-type",
		`{"Records":[],"Records":[]}`: "0 /Records duplicate-field",
		`{"Records":{}}`:              "0  unknown-form",
		`{}`:                          "0  unknown-form",
		`7`:                           "0  unknown-form",
		`[[]]`:                        "0 /0 unknown-form",
		`"text"`:                      "0  unknown-form",
		`[null]`:                      "0 /0 unknown-form",
	} {
		got := parse(t, text)
		require.NotEmpty(t, got.Faults, text)
		require.Equal(t, want, faults(got)[len(got.Faults)-1], domain.Shorten(text))
		require.Empty(t, got.Events)
	}
}

func TestTextThatCannotBeSplitFails(t *testing.T) {
	for _, text := range []string{"", " \n", "x", "{", "[", `{"Records":[`, `[{]`, `[{} {}]`, `[1,]`, `{"a":tru}`, "{\"a\":\"\xff\"}", `{"a"}`, `[{}]x`} {
		got, err := objectjson.Parse([]byte(text), objectjson.Options{})
		require.ErrorIs(t, err, objectjson.ErrNotJSON, text)
		require.NotNil(t, got)
	}
}

// A batch contains 10,000 events, one of them invalid. Parse reports only this event.
func TestParse_ReportsOnlyTheInvalidEvent(t *testing.T) {
	all := make([]string, 10_000)
	for i := range all {
		all[i] = record("ObjectCreated:Put", fmt.Sprint(i))
	}
	for broken, reason := range map[string]string{
		`{"eventName":tru}`: "not-json", "{\"a\":\"\xff\"}": "not-json", `{}`: "unknown-form", `{"eventName":"ObjectCreated:Put"}`: "missing-field",
		record("ObjectCreated:Put", "", `"key":"%zz"`): "key-not-url-encoded",
	} {
		all[7000] = broken
		got, err := objectjson.Parse([]byte(records(all...)), objectjson.Options{MaxEvents: 10_000})
		require.NoError(t, err)
		require.Len(t, got.Events, 9_999)
		require.Len(t, got.Faults, 1)
		require.Equal(t, 7000, got.Faults[0].Index)
		require.Equal(t, reason, got.Faults[0].Reason)
		require.True(t, strings.HasPrefix(got.Faults[0].Pointer, "/Records/7000"))
	}
	_, err := objectjson.Parse([]byte(records(all...)), objectjson.Options{MaxEvents: 9_999})
	require.EqualError(t, err, "more than 9999 events")
}

func TestParse_ReturnsTheHandshake(t *testing.T) {
	handshake := func(data string) string {
		return `[{"id":"2d17","topic":"/x","subject":"","data":` + data + `,"eventType":"Microsoft.EventGrid.SubscriptionValidationEvent","eventTime":"` + at + `"}]`
	}
	got := parse(t, handshake(`{"validationCode":"512d38b6","validationUrl":"https://x"}`))
	require.Empty(t, got.Faults)
	require.Equal(t, &objectjson.Handshake{Code: "512d38b6"}, got.Handshake)
	require.Equal(t, 1, got.Ignored)
	for data, want := range map[string]string{
		`{}`: "/validationCode missing-field", `{"validationCode":""}`: "/validationCode missing-field", `{"validationCode":7}`: "/validationCode wrong-type", `7`: " wrong-type", `null`: " missing-field",
	} {
		require.Equal(t, []string{"0 /0/data" + want}, faults(parse(t, handshake(data))), data)
	}
}
