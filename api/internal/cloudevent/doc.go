// Package cloudevent reads CloudEvents of version 1.0 from HTTP requests: in the binary mode,
// in the structured mode, and in batches.
//
// An event becomes a message with all its attributes. Values of extensions that are no strings
// get their string form, as in the binary mode. JSON data is kept without white space, and data
// of any other kind as its bytes.
//
// Source and id together are the id of the message: two events with both in common are the same
// event, or a mistake of the sender.
package cloudevent
