package objectjson_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/internal/objectjson"
	"github.com/messagehub/messagehub/domain"
)

// Each invalid object in an S3 record is refused with the expected fault.
func TestS3Record_RefusesInvalidObjects(t *testing.T) {
	for object, want := range map[string]string{
		`"size":1`:            "/key missing-field",
		`"key":null`:          "/key missing-field",
		`"key":7`:             "/key wrong-type",
		`"key":["k"]`:         "/key wrong-type",
		`"key":""`:            "/key invalid-name",
		`"key":"a","key":"b"`: "/key duplicate-field",
		`"key":"%"`:           "/key key-not-url-encoded",
		`"key":"%zz"`:         "/key key-not-url-encoded",
		`"key":"%FF"`:         "/key key-not-utf8",
		`"key":"a%C3"`:        "/key key-not-utf8",
		`"key":"\ud800"`:      "/key lone-surrogate",
		`"key":"` + strings.Repeat("k", 1025) + `"`:                          "/key invalid-name",
		`"key":"k","size":-1`:                                                "/size invalid-size",
		`"key":"k","size":-0`:                                                "/size invalid-size",
		`"key":"k","size":1.5`:                                               "/size invalid-size",
		`"key":"k","size":1e3`:                                               "/size invalid-size",
		`"key":"k","size":9223372036854775808`:                               "/size invalid-size",
		`"key":"k","size":"1"`:                                               "/size wrong-type",
		`"key":"k","size":true`:                                              "/size wrong-type",
		`"key":"k","eTag":7`:                                                 "/eTag wrong-type",
		`"key":"k","eTag":"` + strings.Repeat("e", 1025) + `"`:               "/eTag too-long",
		`"key":"k","versionId":{}`:                                           "/versionId wrong-type",
		`"key":"k","versionId":"` + strings.Repeat("v", 1025) + `"`:          "/versionId too-long",
		`"key":"k","sequencer":""`:                                           "/sequencer invalid-sequencer",
		`"key":"k","sequencer":7`:                                            "/sequencer wrong-type",
		`"key":"k","sequencer":"0G"`:                                         "/sequencer invalid-sequencer",
		`"key":"k","sequencer":"` + strings.Repeat("0", 65) + `"`:            "/sequencer sequencer-too-long",
		`"key":"k","x":` + strings.Repeat("[", 70) + strings.Repeat("]", 70): "/x" + strings.Repeat("/0", 61) + " too-deep",
		`"key":"k","x":` + strings.Repeat("1", 401):                          "/x number-too-long",
	} {
		got := parse(t, record("ObjectCreated:Put", "", object))
		require.Equal(t, []string{"0 /s3/object" + want}, faults(got), object)
		require.Empty(t, got.Events)
	}
}

// Each invalid member of an event is reported with the expected fault.
func TestParse_ReportsInvalidMembers(t *testing.T) {
	s3, bridged, event, asCloud := record("ObjectCreated:Put", "k"), bridge("Object Created", `"key":"k"`, ""), grid("Microsoft.Storage.BlobCreated", `"api":"PutBlob"`), cloud("Microsoft.Storage.BlobCreated", `"api":"PutBlob"`)
	for _, tc := range []struct{ text, old, change, want string }{
		{s3, `"eventName":"ObjectCreated:Put"`, `"eventName":7`, "/eventName wrong-type"},
		{s3, `"eventName":"ObjectCreated:Put"`, `"eventName":null`, "/eventName missing-field"},
		{s3, `"eventTime":"` + at + `"`, `"eventTime":"yesterday"`, "/eventTime invalid-time"},
		{s3, `"eventTime":"` + at + `"`, `"eventTime":1700000000`, "/eventTime wrong-type"},
		{s3, `"eventTime":"` + at + `",`, ``, "/eventTime missing-field"},
		{s3, `"eventTime":"` + at + `"`, `"eventTime":"2026-02-30T12:00:00Z"`, "/eventTime invalid-time"},
		{s3, `"bucket":{"name":"readings"}`, `"bucket":"readings"`, "/s3/bucket wrong-type"},
		{s3, `"bucket":{"name":"readings"},`, ``, "/s3/bucket missing-field"},
		{s3, `"name":"readings"`, `"name":""`, "/s3/bucket/name invalid-name"},
		{s3, `"name":"readings"`, `"name":"` + strings.Repeat("b", 256) + `"`, "/s3/bucket/name invalid-name"},
		{s3, `"eventName"`, `"s3":{},"eventName"`, "/s3 duplicate-field"},
		{bridged, `"detail-type":"Object Created"`, `"detail-type":[]`, "/detail-type wrong-type"},
		{bridged, `"time":"` + at + `"`, `"time":""`, "/time invalid-time"},
		{bridged, `"object":{"key":"k"}`, `"object":[]`, "/detail/object wrong-type"},
		{bridged, `"key":"k"`, `"key":"k","version-id":7`, "/detail/object/version-id wrong-type"},
		{bridged, `"key":"k"`, `"key":"k","sequencer":"xyz"`, "/detail/object/sequencer invalid-sequencer"},
		{bridged, `"id":"17793124-05d4-b198-2fde-7ededc63b103"`, `"id":7`, "/id wrong-type"},
		{event, topic, "/subscriptions/x", "/topic invalid-subject"},
		{event, `"topic":"` + topic + `"`, `"topic":7`, "/topic wrong-type"},
		{event, blob, "/blobServices/default/containers/march", "/subject invalid-subject"},
		{event, blob, "/blobServices/default/containers//blobs/k", "/subject invalid-subject"},
		{event, blob, "", "/subject invalid-subject"},
		{event, blob, strings.Repeat("k", 1200), "/subject invalid-subject"},
		{event, blob, "/blobServices/default/containers/march/blobs/" + strings.Repeat("k", 1025), "/subject invalid-name"},
		{event, `"data":{"api":"PutBlob"}`, `"data":null`, "/data missing-field"},
		{event, `"api":"PutBlob"`, `"contentLength":"1"`, "/data/contentLength wrong-type"},
		{event, `"api":"PutBlob"`, `"sequencer":"` + strings.Repeat("0", 65) + `"`, "/data/sequencer sequencer-too-long"},
		{event, `"eventTime":"` + at + `"`, `"eventTime":"` + at + `","id":"2"`, "/id duplicate-field"},
		{asCloud, `"specversion":"1.0"`, `"specversion":"0.3"`, "/specversion invalid-cloudevent"},
		{asCloud, `"id":"831e1650-001e-001b-66ab-eeb76e069631",`, ``, "/id invalid-cloudevent"},
		{asCloud, `"time":"` + at + `",`, ``, "/time missing-field"},
		{asCloud, `"data":{"api":"PutBlob"}`, `"datacontenttype":"application/xml","data":"<a/>"`, "/datacontenttype wrong-type"},
		{asCloud, `"data":{"api":"PutBlob"}`, `"data":7`, "/data wrong-type"},
		{asCloud, `"data":{"api":"PutBlob"}`, `"data_base64":"e30x"`, "/data_base64 not-json"},
		{asCloud, `"data":{"api":"PutBlob"}`, `"data_base64":"!"`, "/data_base64 invalid-cloudevent"},
		{asCloud, `,"data":{"api":"PutBlob"}`, ``, "/data_base64 missing-field"},
	} {
		require.Contains(t, tc.text, tc.old)
		text := strings.Replace(tc.text, tc.old, tc.change, 1)
		require.Equal(t, []string{"0 " + tc.want}, faults(parse(t, text)), text)
	}
}

func TestKeys_AreDecodedOnce(t *testing.T) {
	long := strings.Repeat("日", 1024)
	for encoded, want := range map[string]string{
		"a+b": "a b", "a%2Bb": "a+b", "%25": "%", "a%2Fb%00": "a/b\x00", "%E6%97%A5": "日", "日": "日", `\"\\\u00e9`: `"\é`, long: long, "folder/": "folder/", " ": " ",
	} {
		e := parseOne(t, record("ObjectCreated:Put", "", `"key":"`+encoded+`","size":0`))
		require.Equal(t, want, e.Name.Key())
	}
}

func TestEventTime_IsConvertedToUTC(t *testing.T) {
	for text, want := range map[string]time.Time{
		"2026-03-01T12:00:00Z":           time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		"2026-03-01T12:00:00.123456789Z": time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC),
		"2026-03-01T12:00:00.5+02:00":    time.Date(2026, 3, 1, 10, 0, 0, 500_000_000, time.UTC),
		"2026-03-01T12:00:00.25":         time.Date(2026, 3, 1, 12, 0, 0, 250_000_000, time.UTC),
		"9999-12-31T23:59:59Z":           time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
	} {
		require.Equal(t, want, parseOne(t, strings.Replace(record("ObjectCreated:Put", "k"), at, text, 1)).Time)
	}
}

func TestSequencer_KeepsItsText(t *testing.T) {
	sequencer := func(text string) domain.Sequencer {
		return parseOne(t, record("ObjectCreated:Put", "", `"key":"k","sequencer":`+text)).Sequencer
	}
	require.Equal(t, "0055aEd6", sequencer(`"0055aEd6"`).String())
	require.Equal(t, strings.Repeat("F", 64), sequencer(`"`+strings.Repeat("F", 64)+`"`).String())
	require.True(t, sequencer(`null`).IsNull())
	opaque := parseOne(t, grid("Microsoft.Storage.BlobCreated", `"sequencer":"xyz"`))
	require.Equal(t, domain.OpaqueSequencer, opaque.Sequencer.Form())
}

// An event has no sequencer. If its message is delivered again, it is the same event. In another
// message, it is a different event.
func TestCarrier_IdentifiesARedeliveredEvent(t *testing.T) {
	null := record("LifecycleTransition", "", `"key":"k"`)
	carriers := func(text, messageID string) (all []domain.Carrier) {
		got, err := objectjson.Parse([]byte(text), objectjson.Options{MessageID: messageID})
		require.NoError(t, err)
		require.Empty(t, got.Faults)
		for _, e := range got.Events {
			require.True(t, e.Sequencer.IsNull())
			all = append(all, e.Carrier)
		}
		return all
	}
	two := carriers(records(null, null), "")
	require.NotEqual(t, two[0], two[1], "two like events in one message are two")
	require.Equal(t, two, carriers(records(null, null), ""), "the same body")
	require.NotEqual(t, two, carriers(records(null, null), "7"), "in another message")
	require.Equal(t, carriers(records(null), "7"), carriers(records(null), "7"))
	require.NotEqual(t, carriers(records(null), "7"), carriers(" "+records(null), "7"), "a sender that gives all messages one id")

	first := carriers(records(sqs("1", records(null))), "")
	require.Equal(t, first, carriers(records(sqs("0", records()), sqs("1", records(null))), "9"), "SQS delivers the message again, beside another one")
	require.NotEqual(t, first, carriers(records(sqs("2", records(null))), ""))
	require.Equal(t, carriers(sqs("1", sns("3", records(null))), ""), carriers(sqs("2", sns("3", records(null))), ""), "SNS has sent the message twice")
	withoutID := `{"body":` + quoted(records(null)) + `}`
	require.Equal(t, carriers(withoutID, "1"), carriers("["+withoutID+"]", "2"), "the text of a message without id identifies it")

	for _, text := range []string{bridge("Object Storage Class Changed", `"key":"k"`, ""), grid("Microsoft.Storage.BlobCreated", ""), cloud("Microsoft.Storage.BlobCreated", "")} {
		own := carriers(text, "1")
		require.Equal(t, own, carriers("["+record("Other", "k")+","+text+"]", "2"), "the id of the event identifies it")
		require.NotEqual(t, own, carriers(strings.Replace(text, `"id":"`, `"id":"x`, 1), "1"))
	}
	require.Equal(t, domain.Carrier{}, parseOne(t, record("ObjectCreated:Put", "k")).Carrier, "the sequencer identifies the event")
}
