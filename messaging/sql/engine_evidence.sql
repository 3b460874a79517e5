-- Evidence that an attempt left, or what became of it: receipts and message move forward only.
-- Ranks: messaging.ranks. p_at is when the provider says it happened.
CREATE FUNCTION engine_evidence(
  p_message uuid, p_channel uuid, p_provider_id text, p_attempt integer, p_rank integer, p_at timestamptz)
RETURNS text
LANGUAGE plpgsql VOLATILE AS $$
DECLARE r record; known uuid; result text; t timestamptz;
BEGIN
  PERFORM 1 FROM messages WHERE id = p_message FOR UPDATE;
  t := clock_timestamp();
  IF p_provider_id IS NOT NULL THEN
    -- A message first seen as written on the phone turns out to be this one: it is absorbed.
    SELECT message_id INTO known FROM receipts
      WHERE channel_id = p_channel AND provider_id = p_provider_id FOR UPDATE;
    INSERT INTO receipts AS rc (channel_id, provider_id, message_id, attempt, rank, sent_at, error_code, created_at)
      VALUES (p_channel, p_provider_id, p_message, p_attempt, p_rank, p_at, '', t)
      ON CONFLICT (channel_id, provider_id) DO UPDATE SET
        message_id = excluded.message_id, attempt = greatest(rc.attempt, excluded.attempt),
        rank = greatest(rc.rank, excluded.rank), sent_at = coalesce(rc.sent_at, excluded.sent_at)
      RETURNING rank, rc.sent_at, delivered_at, read_at, failed_at, error_code INTO r;
    IF known IS NOT NULL AND known <> p_message THEN
      DELETE FROM messages WHERE id = known AND origin = 'external_device';
    END IF;
  ELSE
    SELECT p_rank AS rank, p_at AS sent_at, NULL::timestamptz AS delivered_at, NULL::timestamptz AS read_at,
           NULL::timestamptz AS failed_at, '' AS error_code INTO r;
  END IF;
  UPDATE messages m SET
      status = engine_status(greatest(r.rank, p_rank)),
      provider_id = coalesce(p_provider_id, m.provider_id),
      sent_at = coalesce(m.sent_at, r.sent_at, p_at),
      delivered_at = coalesce(m.delivered_at, r.delivered_at), read_at = coalesce(m.read_at, r.read_at),
      lease = NULL, not_before = NULL, waiting_code = '', waiting_until = NULL,
      error_code = '', error_detail = '', error_sent = '', doubted = false, updated_at = t
    WHERE m.id = p_message AND engine_rank(m.status, m.error_sent) < greatest(r.rank, p_rank)
      AND (r.failed_at IS NULL OR greatest(r.rank, p_rank) >= 4);
  -- An ack -1 that came before the answer has waited here for it. It says nothing of a later attempt.
  UPDATE messages m SET status = 'failed', error_sent = 'maybe', error_code = r.error_code,
      provider_id = coalesce(p_provider_id, m.provider_id), lease = NULL, updated_at = t
    WHERE m.id = p_message AND m.status IN ('sending', 'sent', 'in_doubt') AND m.attempt = p_attempt
      AND r.failed_at IS NOT NULL AND greatest(r.rank, p_rank) < 4;
  SELECT status INTO result FROM messages WHERE id = p_message;
  RETURN result;
END $$;
