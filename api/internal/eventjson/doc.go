// Package eventjson is the JSON form of an event, whichever edge it comes to:
//
//	{"id", "recipient", "origin", "contentType", "documentType", "supportsBundling", "weight", "payload"}
//
// It reads one event ([Parse]), an array of them ([Parse], or [Read] while the array
// comes in), and CloudEvents that carry either as their data ([ParseCloudEvent],
// [ParseCloudEvents]).
//
// It promises that what it takes for an event is JSON that says just that: no field is missing,
// unknown, there twice or guessed from another type, names are compared letter by letter, and a
// payload is kept as it was sent, without white space. A payload has a shape that common
// parsers read alike: limited nesting, limited numbers, each name once in an object, and whole
// surrogate pairs. After a faulty event the package reads the next one, so that a sender gets
// all faults together, each with a JSON pointer ([Fault]). Text that is no JSON ends the
// reading, since nothing can be said about what follows ([SyntaxError]).
//
// What an event may say beyond the form, such as which origins there are, is for
// the hub to know.
package eventjson
