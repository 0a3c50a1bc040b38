// Package items is what the old layouts need of azcosmos: one method for one request.
//
// A throttled request is sent again after the time that the account names, until its
// context ends, and nothing else is ever sent again. The layouts are measured on an
// account that throttles, where giving up would leave the figure unmeasured.
//
// An error of a method is a domain error: Uncertain if there was no answer, or one that
// leaves open whether the request was carried out; Unknown for a refusal, which Status
// tells from others.
package items
