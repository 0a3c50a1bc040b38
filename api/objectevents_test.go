package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// failingObjects is an in-memory store of objects that fails for some objects.
type failingObjects struct {
	*memory.Objects
	errs map[string]error // errors that the store returns, by object key
}

func (o *failingObjects) Ingest(ctx context.Context, reports []repository.ObjectReport) ([]repository.ObjectResult, error) {
	results, err := o.Objects.Ingest(ctx, reports)
	for i := range results {
		if err := o.errs[reports[i].Name.Key()]; err != nil {
			results[i] = repository.ObjectResult{Err: err}
		}
	}
	return results, err
}

func serveObjectEvents(t *testing.T, change ...func(*api.Options, *hub.Options)) (*hubFixture, *failingObjects) {
	t.Helper()
	objects := &failingObjects{memory.NewObjects(), map[string]error{}}
	f := serve(t, append(change, func(o *api.Options, _ *hub.Options) {
		o.Objects = ledger.New(ledger.Ports{Objects: objects}, ledger.Options{})
		o.Limits.Events = 10
	})...)
	return f, objects
}

func (f *hubFixture) postObjectEvents(body string, headers ...string) domainAnswer {
	f.t.Helper()
	return f.do(http.MethodPost, "/v1/object-events", body, append([]string{"Authorization", "Bearer " + token}, headers...)...)
}

func objectRecord(key string) string {
	return fmt.Sprintf(`{"eventTime":"2026-03-01T12:00:00Z","eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"readings"},"object":{"key":%q,"sequencer":"01"}}}`, key)
}

func objectRecords(all ...string) string { return `{"Records":[` + strings.Join(all, ",") + `]}` }

const validation = `[{"id":"1","topic":"/x","subject":"","data":{"validationCode":"512d38b6"},"eventType":"Microsoft.EventGrid.SubscriptionValidationEvent","eventTime":"2026-03-01T12:00:00Z"}]`

func TestObjectEvents_AreStoredEachByItself(t *testing.T) {
	f, objects := serveObjectEvents(t)
	body := objectRecords(objectRecord("a"), `{"eventName":"ObjectTagging:Put"}`, objectRecord("%FF"), objectRecord("a"), `{`+`}`, objectRecord("b"))
	got := f.postObjectEvents(body).wants(http.StatusOK)
	require.JSONEq(t, `{"accepted":2,"duplicates":1,"ignored":1,"refused":[
		{"index":2,"pointer":"/Records/2/s3/object/key","reason":"key-not-utf8","detail":"key: want a key that is UTF-8 once it is decoded, got \"%FF\""},
		{"index":4,"pointer":"/Records/4","reason":"unknown-form","detail":"want an event of S3, EventBridge, Event Grid or CloudEvents, or a message of SQS or SNS with some"}]}`, got.body)
	got = f.postObjectEvents(body).wants(http.StatusOK)
	require.Contains(t, got.body, `{"accepted":0,"duplicates":3,"ignored":1,"refused":[{`)
	require.Contains(t, f.postObjectEvents(`[]`).wants(http.StatusOK).body, `{"accepted":0,"duplicates":0,"ignored":0,"refused":[]}`)
	page, err := objects.List(t.Context(), repository.ObjectRange{Bucket: "readings"}, 10)
	require.NoError(t, err)
	require.Len(t, page.Objects, 2)
	f.logs.wait(t, `"first_refused":"/Records/2/s3/object/key: key-not-utf8"`)
}

func TestObjectEvents_Return503OnlyIfAValidEventIsNotStored(t *testing.T) {
	f, objects := serveObjectEvents(t)
	full := fmt.Errorf("%w: %w", repository.ErrPartitionFull, domain.Errorf(domain.Unavailable, "403"))
	for _, tc := range []struct {
		err  error
		typ  string
		want int
	}{
		{domain.Errorf(domain.Unavailable, "down"), "unavailable", 503},
		{domain.Errorf(domain.Uncertain, "lost"), "uncertain", 503},
		{domain.Errorf(domain.Busy, "throttled"), "unavailable", 503},
		{domain.Errorf(domain.Damaged, "damaged"), "unavailable", 503},
		{domain.Errorf(domain.NewerFormat, "format 2"), "newer-format", 503},
		{full, "partition-full", 503},
	} {
		objects.errs = map[string]error{"b": tc.err}
		a := "a" + tc.typ
		got := f.postObjectEvents(objectRecords(objectRecord(a), objectRecord("b"), `{}`))
		p := got.problem(tc.want, tc.typ)
		require.Equal(t, 1, p.Accepted+p.Duplicates)
		require.NotEmpty(t, got.header.Get("Retry-After"))
	}
	objects.errs["a"] = full
	objects.errs["b"] = domain.Errorf(domain.Unavailable, "down")
	f.postObjectEvents(objectRecords(objectRecord("a"), objectRecord("b"))).problem(503, "unavailable")
}

func TestObjectEvents_ThatCannotBeReadAreRefused(t *testing.T) {
	f, _ := serveObjectEvents(t)
	for body, typ := range map[string]string{`{`: "not-json", ``: "unsupported-media-type", `[{} {}]`: "not-json"} {
		f.postObjectEvents(body).problem(map[string]int{"not-json": 400, "unsupported-media-type": 415}[typ], typ)
	}
	f.postObjectEvents(`[`+strings.Repeat(`{},`, 10)+`{}]`).problem(413, "too-many-events")
	f.postObjectEvents(`[]`, "Content-Type", "text/plain").problem(415, "unsupported-media-type")
	f.postObjectEvents(`[]`, "Content-Type", "application/json; charset=latin1").problem(415, "unsupported-media-type")
	f.postObjectEvents(`[]`, "Content-Encoding", "gzip").problem(415, "unsupported-media-type")
	f.do(http.MethodPost, "/v1/object-events", `[]`).problem(401, "missing-token")
	f.do(http.MethodPost, "/v1/object-events?x=1", `[]`, "Authorization", "Bearer "+token).problem(400, "invalid")
	require.Equal(t, "POST, OPTIONS", f.do(http.MethodGet, "/v1/object-events", "").wants(405).header.Get("Allow"))
	serve(t).do(http.MethodPost, "/v1/object-events", `[]`, "Authorization", "Bearer "+token).problem(503, "not-provisioned")
}

func TestObjectEvents_InEveryForm(t *testing.T) {
	f, _ := serveObjectEvents(t)
	const subject, topic = "/blobServices/default/containers/c/blobs/", "/providers/Microsoft.Storage/storageAccounts/account"
	event := `{"specversion":"1.0","type":"Microsoft.Storage.BlobCreated","source":"` + topic + `","subject":"` + subject + `a","id":"1","time":"2026-03-01T12:00:00Z","data":{"api":"PutBlob","sequencer":"1"}}`
	const accepted = `{"accepted":1,"duplicates":0,"ignored":0,"refused":[]}`
	require.JSONEq(t, accepted, f.postObjectEvents(event, "Content-Type", "application/cloudevents+json; charset=utf-8").wants(200).body)
	require.JSONEq(t, accepted, f.postObjectEvents("["+strings.ReplaceAll(event, "blobs/a", "blobs/b")+"]", "Content-Type", "application/cloudevents-batch+json").wants(200).body)
	require.JSONEq(t, accepted, f.postObjectEvents(`{"api":"PutBlob","sequencer":"1"}`, "ce-specversion", "1.0", "ce-type", "Microsoft.Storage.BlobCreated",
		"ce-source", topic, "ce-subject", subject+"c", "ce-id", "3", "ce-time", "2026-03-01T12:00:00Z").wants(200).body)
	message, err := json.Marshal(objectRecords(objectRecord("a")))
	require.NoError(t, err)
	require.JSONEq(t, accepted, f.postObjectEvents(`{"Type":"Notification","MessageId":"1","TopicArn":"arn","Message":`+string(message)+`}`,
		"Content-Type", "text/plain; charset=UTF-8", "x-amz-sns-message-type", "Notification").wants(200).body)
}

func TestObjectEvents_HandshakeOfEventGrid(t *testing.T) {
	f, _ := serveObjectEvents(t)
	require.JSONEq(t, `{"validationResponse":"512d38b6"}`, f.postObjectEvents(validation).wants(200).body)
	p := f.postObjectEvents(strings.Replace(validation, `"validationCode":"512d38b6"`, "", 1)).problem(400, "invalid")
	require.Equal(t, []string{"/0/data/validationCode"}, p.pointers())
	among := strings.Replace(validation, "[", "["+objectRecord("a")+",", 1)
	require.JSONEq(t, `{"accepted":1,"duplicates":0,"ignored":1,"refused":[]}`, f.postObjectEvents(among).wants(200).body)
	f.do(http.MethodPost, "/v1/object-events", validation).problem(401, "missing-token")
}

func TestObjectEvents_HandshakeOfCloudEvents(t *testing.T) {
	f, _ := serveObjectEvents(t)
	got := f.do(http.MethodOptions, "/v1/object-events", "", "WebHook-Request-Origin", "eventgrid.azure.net", "WebHook-Request-Rate", "120").wants(200)
	require.Equal(t, "eventgrid.azure.net", got.header.Get("WebHook-Allowed-Origin"))
	require.Equal(t, "*", got.header.Get("WebHook-Allowed-Rate"))
	require.Equal(t, "OPTIONS, POST", got.header.Get("Allow"))
	require.Empty(t, got.body)
	f.do(http.MethodOptions, "/v1/object-events", "").problem(400, "invalid")
	f.do(http.MethodOptions, "/v1/object-events", "", "WebHook-Request-Origin", strings.Repeat("o", 256)).problem(400, "invalid")
}
