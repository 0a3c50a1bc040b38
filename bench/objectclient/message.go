package objectclient

import (
	"fmt"
	"strings"
	"time"
)

// An Event is an event that S3 reports about an object.
type Event struct {
	Key       string // key of the object, without characters that a URL must escape
	Deleted   bool   // the object was deleted; if false, it was created
	Sequencer int64  // position among the events of the object; later events have greater numbers
}

// Began is the time of the event with sequencer 0. The event with sequencer n is n milliseconds
// later.
var Began = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// Message returns the notification of events in a bucket, in the form in which S3 sends it.
func Message(bucket string, events ...Event) []byte {
	b := []byte(`{"Records":[`)
	for i, e := range events {
		if i > 0 {
			b = append(b, ',')
		}
		name, facts := "ObjectRemoved:Delete", ""
		if !e.Deleted {
			name, facts = "ObjectCreated:Put", fmt.Sprintf(`"size":%d,"eTag":"%032x",`, 1_000+e.Sequencer, e.Sequencer)
		}
		b = fmt.Appendf(b, record, Began.Add(time.Duration(e.Sequencer)*time.Millisecond).Format("2006-01-02T15:04:05.000Z"), name, e.Sequencer, bucket, e.Key, facts, e.Sequencer)
	}
	return append(b, "]}"...)
}

// record is the template of an event as S3 documents it.
var record = `{"eventVersion":"2.1","eventSource":"aws:s3","awsRegion":"eu-north-1","eventTime":"%s","eventName":"%s",` +
	`"userIdentity":{"principalId":"AWS:AIDAEXAMPLE"},"requestParameters":{"sourceIPAddress":"192.0.2.1"},` +
	`"responseElements":{"x-amz-request-id":"%016X","x-amz-id-2":"` + strings.Repeat("x", 76) + `"},` +
	`"s3":{"s3SchemaVersion":"1.0","configurationId":"hub","bucket":{"name":"%[4]s","ownerIdentity":{"principalId":"AEXAMPLE"},"arn":"arn:aws:s3:::%[4]s"},` +
	`"object":{"key":"%[5]s",%[6]s"sequencer":"%018[7]X"}}}`
