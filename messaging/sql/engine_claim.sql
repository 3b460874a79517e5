-- Locks due, free lanes, fair over organizations; then, with a new snapshot, picks one message for each.
-- p_most: how many claims all organizations together may have in flight; each has its share of it, so that a slow
-- gateway of one never holds all the threads. Two dispatchers that claim at once may pass it by one round.
CREATE FUNCTION engine_claim(p_limit integer, p_lease_seconds double precision, p_most integer DEFAULT 1000000)
RETURNS TABLE (message_id uuid, channel_id uuid, lease bigint, organization_id uuid)
LANGUAGE plpgsql VOLATILE
-- Of a moment it is not told the planner takes a third of all lanes to be due, and would read every one at each tick.
SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE due uuid[]; t timestamptz;
BEGIN
  -- A moment and not the clock itself, which no index can be asked for.
  t := clock_timestamp();
  SELECT array_agg(locked.channel_id) INTO due FROM (
    WITH in_flight AS MATERIALIZED (
      SELECT organization_id, count(*) AS number FROM lanes WHERE busy_message IS NOT NULL GROUP BY organization_id
    ), waiting AS MATERIALIZED (
      SELECT DISTINCT organization_id FROM lanes WHERE next_at <= t AND busy_message IS NULL AND rate IS NULL
    ), has_room AS MATERIALIZED (
      SELECT organization_id, coalesce(number, 0) AS number, share - coalesce(number, 0) AS room
      FROM waiting LEFT JOIN in_flight USING (organization_id), (
        SELECT greatest(p_most / greatest(count(*), 1), 1) AS share
        FROM (SELECT organization_id FROM waiting UNION SELECT organization_id FROM in_flight) AS at_it
      ) AS shares WHERE share > coalesce(number, 0)
    )
    -- Of thousands that are due, only those are looked at that may be taken: the first of each organization.
    SELECT l.channel_id FROM lanes l JOIN (
      SELECT first.channel_id, first.next_at, has_room.number + first.place AS place FROM has_room CROSS JOIN LATERAL (
        SELECT d.channel_id, d.next_at, row_number() OVER (ORDER BY d.next_at) AS place FROM lanes d
        WHERE d.organization_id = has_room.organization_id
          AND d.next_at <= t AND d.busy_message IS NULL AND d.rate IS NULL
        ORDER BY d.next_at LIMIT has_room.room
      ) AS first ORDER BY place, next_at LIMIT p_limit
    ) AS candidates USING (channel_id)
    WHERE l.next_at <= t AND l.busy_message IS NULL
    FOR UPDATE OF l SKIP LOCKED
  ) AS locked;
  IF due IS NULL THEN RETURN; END IF;
  t := clock_timestamp();

  RETURN QUERY
  WITH pick AS MATERIALIZED (
    SELECT l.channel_id, l.lease + 1 AS lease, next.id AS message_id
    FROM lanes l LEFT JOIN LATERAL (
      SELECT m.id FROM messages m LEFT JOIN streams s ON s.id = m.stream_id
      WHERE m.channel_id = l.channel_id AND m.status = 'queued'
        AND (m.not_before IS NULL OR m.not_before <= t)
        AND (m.priority < 2 OR l.broadcast_at <= t AND l.barred = '')
        AND (m.stream_id IS NULL OR s.state = 'running' AND (s.next_at IS NULL OR s.next_at <= t))
      ORDER BY m.priority, m.turn, m.position LIMIT 1
    ) AS next ON l.connected AND cardinality(l.holds) = 0 AND l.any_at <= t
    WHERE l.channel_id = ANY (due)
  ), taken AS (
    UPDATE messages m SET status = 'claimed', lease = p.lease, updated_at = t
    FROM pick p WHERE m.id = p.message_id AND m.status = 'queued'
    RETURNING m.id, m.channel_id, m.lease, m.organization_id
  ), busy AS (
    UPDATE lanes l SET lease = k.lease, busy_message = k.id, next_at = NULL,
        busy_until = t + make_interval(secs => p_lease_seconds)
    FROM taken k WHERE l.channel_id = k.channel_id
  ), idle AS (
    UPDATE lanes l SET next_at = CASE
        WHEN NOT l.connected OR cardinality(l.holds) > 0 THEN NULL
        WHEN l.any_at > t THEN l.any_at
        WHEN p.message_id IS NOT NULL THEN t
        ELSE (
          SELECT min(greatest(m.not_before, s.next_at, t, CASE WHEN m.priority = 2 THEN l.broadcast_at END))
          FROM messages m LEFT JOIN streams s ON s.id = m.stream_id
          WHERE m.channel_id = l.channel_id AND m.status = 'queued'
            AND (m.priority < 2 OR l.barred = '') AND (m.stream_id IS NULL OR s.state = 'running'))
        END
    FROM pick p WHERE l.channel_id = p.channel_id
      AND NOT EXISTS (SELECT 1 FROM taken k WHERE k.channel_id = p.channel_id)
  )
  SELECT k.id, k.channel_id, k.lease, k.organization_id FROM taken k;
END $$;
