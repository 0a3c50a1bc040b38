// Package survey has the use case of operators who look for mailboxes with problems: List
// returns lines of the survey, filtered, ordered and page by page.
//
// A store cannot order across partitions, so this package sorts the summaries of all lines in
// memory. A list reads no mailbox. Its data is from the time Page.SurveyedAt.
package survey
