// Package survey lists mailboxes, so that operators find mailboxes with problems. List returns
// filtered and ordered pages of the lines that the survey has stored.
//
// A store cannot order documents of several partitions, so this package sorts the positions of all
// lines in memory. A list reads no mailbox: its data is from the time Page.SurveyedAt.
package survey
