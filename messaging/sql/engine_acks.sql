-- A batch of acks, of any channels, set-wise: messages are locked first, in order (one lock order everywhere;
-- unsorted batches deadlocked). Rank -1 is a failure. Returns the messages that moved.
CREATE FUNCTION engine_acks(
  p_channels uuid[], p_ids text[], p_ranks integer[], p_times timestamptz[], p_codes text[])
RETURNS TABLE (message_id uuid, status text)
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
BEGIN
  PERFORM 1 FROM messages m WHERE m.id IN (
      SELECT rc.message_id FROM unnest(p_channels, p_ids) AS given (channel_id, provider_id)
        JOIN receipts rc ON rc.channel_id = given.channel_id AND rc.provider_id = given.provider_id
    ) ORDER BY m.id FOR UPDATE;
  RETURN QUERY
  WITH acks AS (
    SELECT channel_id, provider_id, max(rank) AS rank,
           min(happened_at) FILTER (WHERE rank >= 3) AS sent_at,
           min(happened_at) FILTER (WHERE rank >= 4) AS delivered_at,
           min(happened_at) FILTER (WHERE rank >= 5) AS read_at,
           min(happened_at) FILTER (WHERE rank < 0) AS failed_at,
           max(code) FILTER (WHERE rank < 0) AS code
      FROM unnest(p_channels, p_ids, p_ranks, p_times, p_codes)
        AS given (channel_id, provider_id, rank, happened_at, code)
      GROUP BY channel_id, provider_id ORDER BY channel_id, provider_id
  ), met AS (
    INSERT INTO receipts AS rc (channel_id, provider_id, attempt, rank, sent_at, delivered_at, read_at,
                                failed_at, error_code, created_at)
    SELECT channel_id, provider_id, 0, greatest(rank, 0), sent_at, delivered_at, read_at, failed_at,
           coalesce(code, ''), clock_timestamp() FROM acks
    ON CONFLICT (channel_id, provider_id) DO UPDATE SET
      rank = greatest(rc.rank, excluded.rank), sent_at = coalesce(rc.sent_at, excluded.sent_at),
      delivered_at = coalesce(rc.delivered_at, excluded.delivered_at),
      read_at = coalesce(rc.read_at, excluded.read_at),
      failed_at = coalesce(rc.failed_at, excluded.failed_at),
      error_code = coalesce(nullif(excluded.error_code, ''), rc.error_code)
    RETURNING rc.message_id, rc.attempt, rc.rank, rc.sent_at, rc.delivered_at, rc.read_at, rc.failed_at, rc.error_code
  ), risen AS (
    UPDATE messages m SET status = engine_status(met.rank),
        sent_at = coalesce(m.sent_at, met.sent_at), delivered_at = coalesce(m.delivered_at, met.delivered_at),
        read_at = coalesce(m.read_at, met.read_at), lease = NULL, not_before = NULL,
        waiting_code = '', waiting_until = NULL, error_code = '', error_detail = '', error_sent = '',
        doubted = false, updated_at = clock_timestamp()
      -- "sent" that is known to have failed since is no evidence any more.
      FROM met WHERE m.id = met.message_id AND met.rank >= 3 AND (met.failed_at IS NULL OR met.rank >= 4) AND engine_rank(m.status, m.error_sent) < met.rank
    RETURNING m.id, m.status
  ), fallen AS (
    -- Ack -1: failed, unless something at or above delivered is known. It may have left all the same.
    UPDATE messages m SET status = 'failed', error_sent = 'maybe', error_code = met.error_code,
        lease = NULL, updated_at = clock_timestamp()
      FROM met WHERE m.id = met.message_id AND met.failed_at IS NOT NULL AND met.rank < 4
        AND met.attempt = m.attempt AND m.status IN ('sending', 'sent', 'in_doubt')
        AND NOT EXISTS (SELECT 1 FROM risen WHERE risen.id = m.id)
    RETURNING m.id, m.status
  )
  SELECT id, status::text FROM risen UNION ALL SELECT id, status::text FROM fallen;
END $$;
