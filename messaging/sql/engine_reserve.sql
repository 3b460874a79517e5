-- Slices of lanes that are not serial: each due one gives what its bucket holds, at most p_slice_seconds' worth of
-- its rate, by arrival arithmetic (any_at: when the next message may be taken). The lane's lock makes one reserver.
CREATE FUNCTION engine_reserve(p_limit integer, p_slice_seconds double precision)
RETURNS TABLE (channel_id uuid, organization_id uuid, lease bigint, messages uuid[])
LANGUAGE plpgsql VOLATILE
-- As engine_claim.
SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE l lanes; t timestamptz := clock_timestamp(); room integer; ids uuid[]; taken uuid[]; begins timestamptz;
  slice interval := make_interval(secs => p_slice_seconds);
BEGIN
  FOR l IN SELECT * FROM lanes WHERE rate IS NOT NULL AND next_at <= t AND busy_message IS NULL
           ORDER BY next_at LIMIT p_limit FOR UPDATE SKIP LOCKED LOOP
    t := clock_timestamp();
    IF NOT l.connected OR cardinality(l.holds) > 0 THEN
      UPDATE lanes SET next_at = NULL WHERE channel_id = l.channel_id;
      CONTINUE;
    END IF;
    begins := greatest(l.any_at, t);
    -- Two slices on their way are enough: where nobody begins them, more would only wait for their leases.
    room := least(
      greatest(floor(extract(epoch FROM t + slice - begins) * l.rate), (begins = t)::integer),
      greatest(2 * p_slice_seconds * l.rate, 1)
        - (SELECT count(*) FROM messages m WHERE m.channel_id = l.channel_id AND m.status = 'claimed'))::integer;
    IF room < 1 THEN
      UPDATE lanes SET next_at = greatest(t, l.any_at - slice) + slice / 2 WHERE channel_id = l.channel_id;
      CONTINUE;
    END IF;
    ids := ARRAY(
      SELECT m.id FROM messages m LEFT JOIN streams s ON s.id = m.stream_id
      WHERE m.channel_id = l.channel_id AND m.status = 'queued' AND (m.not_before IS NULL OR m.not_before <= t)
        AND (m.priority < 2 OR l.barred = '')
        AND (m.stream_id IS NULL OR s.state = 'running' AND (s.next_at IS NULL OR s.next_at <= t))
      ORDER BY m.priority, m.turn, m.position LIMIT room);
    WITH claimed AS (
      UPDATE messages m SET status = 'claimed', lease = l.lease + 1, updated_at = t
      WHERE m.id = ANY (ids) AND m.status = 'queued' RETURNING m.id
    ) SELECT array_agg(given.id ORDER BY given.place) INTO taken
      FROM unnest(ids) WITH ORDINALITY AS given (id, place) JOIN claimed ON claimed.id = given.id;
    l.any_at := begins + make_interval(secs => coalesce(cardinality(taken), 0) / l.rate);
    UPDATE lanes SET lease = l.lease + 1, any_at = l.any_at, next_at = CASE
        WHEN cardinality(taken) = room THEN greatest(t, l.any_at - slice / 2)
        ELSE (
          SELECT min(greatest(m.not_before, s.next_at, t + slice / 2))
          FROM messages m LEFT JOIN streams s ON s.id = m.stream_id
          WHERE m.channel_id = l.channel_id AND m.status = 'queued' AND (m.priority < 2 OR l.barred = '')
            AND (m.stream_id IS NULL OR s.state = 'running'))
        END
      WHERE channel_id = l.channel_id;
    IF taken IS NOT NULL THEN
      channel_id := l.channel_id; organization_id := l.organization_id; lease := l.lease + 1; messages := taken;
      RETURN NEXT;
    END IF;
  END LOOP;
END $$;
