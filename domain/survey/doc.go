// Package survey has the use case of operators who look for the mailboxes that need them: List
// returns lines of the survey, filtered, ordered and page by page.
//
// A store orders nothing across partitions, so the order is made here, of the summaries of all
// lines, in memory. A list reads no mailbox. Everything is as of the moment that it states.
package survey
