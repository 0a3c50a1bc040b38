// Package eventjson decodes the JSON format of an event for all interfaces of the hub:
//
//	{"id", "recipient", "origin", "contentType", "documentType", "supportsBundling", "weight", "payload"}
//
// It decodes one event ([Parse]), an array of events ([Parse], or [Read] while the array arrives),
// and CloudEvents whose data is an event or an array of events ([ParseCloudEvent],
// [ParseCloudEvents]).
//
// The package accepts an event only if its JSON is unambiguous: no field is missing, unknown,
// repeated or of the wrong type, and names are case-sensitive. The payload is stored without
// insignificant white space and is otherwise unchanged. Its structure must be one that common
// parsers read in the same way: limited nesting, limited numbers, each name once in an object, and
// whole surrogate pairs.
//
// After a faulty event, the package continues with the next event, so that a sender receives all
// faults together, each with a JSON pointer ([Fault]). Text that is not JSON ends the reading,
// because the package cannot find the events after it ([SyntaxError]).
//
// The hub checks all other rules for an event, such as which origins exist.
package eventjson
