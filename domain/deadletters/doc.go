// Package deadletters has the use case of operators for the dead letters of the queues of a
// Service Bus: list them, look at one, send them again, and delete them.
//
// It promises:
//
//   - Nothing is shown, sent again or deleted unless a record says who wants it and why. The
//     record is stored first, and gets its outcome afterwards.
//   - An action about several dead letters names their reason and the highest of their numbers,
//     so that it ends although a message which is sent again may come back as a dead letter.
//   - An action that has begun with a dead letter ends with it, also when its caller is gone.
//
// What it leaves to others: the port [Bus] reaches the queues, and says what a failure leaves
// behind. Which queues exist, and which of them take their dead letters again, is configured.
//
// What a failure leaves behind: a node that dies in an action leaves a record without an
// outcome. The bus has then carried out a part of the order, or nothing; a list of the dead
// letters shows which ones are left. A message of which a copy was sent may still be among
// them: when it is sent again, there are two copies, and who stores their events removes the
// duplicates by the ids of the events.
package deadletters
