// A domain in C#, with Azure.Messaging.ServiceBus, Azure.Storage.Blobs, Google.Protobuf, and
// Grpc.Tools, which generates the classes of contract.proto if the project file has
// <Protobuf Include="contract.proto" GrpcServices="None" />
using System.Security.Cryptography;
using System.Text;
using Azure.Messaging.ServiceBus;
using Azure.Storage.Blobs;
using Google.Protobuf;
using Reason = DataBundleResponseContract.Types.RequestFailure.Types.Reason;

public static class Domain
{
    // AddProperties sets the properties that messages of the original MessageHub have. The hub
    // does not need them.
    static ServiceBusMessage AddProperties(ServiceBusMessage message, string type, string correlation)
    {
        message.ApplicationProperties["OperationTimestamp"] = DateTime.UtcNow.ToString("yyyy-MM-dd'T'HH:mm:ss'Z'");
        message.ApplicationProperties["OperationCorrelationId"] = correlation;
        message.ApplicationProperties["MessageVersion"] = 1;
        message.ApplicationProperties["MessageType"] = type;
        message.ApplicationProperties["EventIdentification"] = Guid.NewGuid().ToString();
        return message;
    }

    // SendEvent announces data to the hub; json is one event. Await it before the next event
    // of the same recipient. If it fails, send the same event again: the hub stores an event
    // id once.
    public static Task SendEvent(ServiceBusSender sender, string recipient, string json)
    {
        var id = Convert.ToHexString(SHA256.HashData(Encoding.UTF8.GetBytes(recipient + json)))[..32];
        var message = new ServiceBusMessage(json) { MessageId = id, SessionId = recipient, ContentType = "application/json" };
        return sender.SendMessageAsync(AddProperties(message, "DataAvailable", id));
    }

    // AnswerRequest waits for a request of the hub and replies to it. Run several loops that
    // call it. It throws a ServiceBusException with the reason ServiceTimeout if no request
    // waits.
    public static async Task AnswerRequest(ServiceBusClient bus, string queue, BlobContainerClient container,
        Func<DataBundleRequestContract, List<Guid>, Task<Stream>> produce)
    {
        await using var session = await bus.AcceptNextSessionAsync(queue);
        var message = await session.ReceiveMessageAsync(TimeSpan.FromSeconds(5));
        if (message == null) return; // the request has expired
        var request = DataBundleRequestContract.Parser.ParseFrom(message.Body.ToArray());
        var reply = new DataBundleResponseContract { RequestId = request.RequestId, RequestIdempotencyId = request.IdempotencyId };
        try
        {
            var list = await container.GetBlobClient(request.DataAvailableNotificationReferenceId).DownloadContentAsync();
            await using var content = await produce(request, EventIds(list.Value.Content.ToArray()));
            var blob = container.GetBlobClient(request.IdempotencyId + "_data");
            await blob.UploadAsync(content, overwrite: true);
            reply.Success = new() { ContentUri = blob.Uri.GetLeftPart(UriPartial.Path) };
        }
        catch (Exception e)
        {
            reply.Failure = new() { Reason = Reason.InternalError, FailureDescription = e.Message };
        }
        await using var sender = bus.CreateSender(queue + "-reply");
        var response = new ServiceBusMessage(reply.ToByteArray())
        {
            MessageId = request.RequestId, SessionId = request.RequestId, TimeToLive = TimeSpan.FromSeconds(30),
        };
        await sender.SendMessageAsync(AddProperties(response, "DataBundleResponse", request.IdempotencyId));
        await session.CompleteMessageAsync(message); // only after the reply was sent
    }

    // ReceiveNotice waits for a notice. The message id is BUNDLE_ACTOR, and is the same if the
    // notice is delivered again.
    public static async Task ReceiveNotice(ServiceBusReceiver receiver, Func<string, string, string, Task> handle)
    {
        var message = await receiver.ReceiveMessageAsync(TimeSpan.FromSeconds(60));
        if (message == null) return;
        var notice = DequeueContract.Parser.ParseFrom(message.Body.ToArray());
        await handle(message.MessageId, notice.MarketOperator, notice.DataAvailableNotificationReferenceId);
        await receiver.CompleteMessageAsync(message); // if handle throws, the notice is delivered again when its lock has expired
    }

    // EventIds decodes a list of ids of 16 bytes each, in the byte order of Guid.
    static List<Guid> EventIds(byte[] list) => list.Chunk(16).Select(id => new Guid(id)).ToList();
}
