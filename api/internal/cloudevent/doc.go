// Package cloudevent decodes CloudEvents of version 1.0 in HTTP requests: in the binary mode, in
// the structured mode, and in batches.
//
// An event becomes a message with all its attributes. Values of extensions that are not strings are
// converted to strings, as in the binary mode. JSON data is stored without insignificant white
// space, and other data as its bytes.
//
// The id of the message consists of the source and the id of the event. If two events have the same
// source and id, they are the same event, or the sender has made a mistake.
package cloudevent
