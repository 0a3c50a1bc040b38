// Command notices lists what the command messagehub links: each module with its version, the names of its
// licences, and their texts. Anyone who redistributes the command must include these texts.
//
//	go run ./deploy/notices -o bin/NOTICES
//
// It needs the go command and the module cache, and nothing else. The list is that of all systems for which
// there are releases. A module without a licence, and a licence that it does not know by name, is an error:
// then a person has to look at it. After an error, no file is left behind.
package main
